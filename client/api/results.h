// From the engine's answers to the results of egret.h.
//
//   one call, one answer   Batch: answers go straight into the caller's array
//   many under way         Queue: answers go straight into the array of egret_reap() or egret_wait(); what these have no room
//                          for, and what comes outside of them, is kept for the next one, or for the callback
//
// Thread: the client's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "client/api/buffers.h"
#include "client/egret.h"
#include "client/engine/call.h"
#include "op/op.h"

namespace egret::client {

// The caller's array: its elements may be longer than ours.
class ResultArray {
 public:
  ResultArray() = default;  // the results are wanted by nobody
  explicit ResultArray(egret_result* first) : at_(reinterpret_cast<char*>(first)), stride_(first->size) {}
  static bool is_valid(const egret_result* first) {
    return first == nullptr || (first->size >= kLeast && first->size <= kMost && first->size % 8 == 0);
  }

  bool is_wanted() const { return at_ != nullptr; }
  void* element(size_t index) const { return at_ + index * stride_; }
  // `write` gives all fields of one element; what we do not know of it becomes 0.
  template <typename Write>
  void fill(void* element, Write write) const {
    static_assert(sizeof(egret_result) == kLeast, "an element may be shorter than a result");
    egret_result& result = *static_cast<egret_result*>(element);
    write(result);
    result.size = stride_;
    if (stride_ > sizeof result) [[unlikely]]
      std::memset(static_cast<char*>(element) + sizeof result, 0, stride_ - sizeof result);
  }

 private:
  static constexpr uint32_t kLeast = 80;  // of version 0.2
  static constexpr uint32_t kMost = 1024;

  char* at_ = nullptr;
  uint32_t stride_ = 0;
};

// EGRET_… of what came of an op.
int code_of(const Call& call, const op::Result& result);
// All of it, with a copy of the value.
void write_result(const Call& call, const op::Result& result, Buffers& buffers, egret_result& out);

// The answers of one call of several ops.
class Batch final : public AnswerSink {
 public:
  Batch(ResultArray results, Buffers& buffers) : results_(results), buffers_(buffers) {}

  void on_answer(const Call& call, const op::Result& result) override;
  // An op that was not submitted.
  void fail(size_t index, int code, uint64_t tag);
  // Before and after an op is submitted; its answer may come in between.
  void expect() { ++left_; }
  void expect_less() { --left_; }
  void* context(size_t index) const { return results_.is_wanted() ? results_.element(index) : nullptr; }

  bool is_over() const { return left_ == 0; }
  size_t hits() const { return hits_; }
  int first_error() const { return first_error_; }
  size_t errors() const { return errors_; }
  int last_code() const { return last_code_; }
  uint64_t last_number() const { return last_number_; }

 private:
  void count(int code);

  const ResultArray results_;
  Buffers& buffers_;
  size_t left_ = 0;
  size_t hits_ = 0, errors_ = 0;
  int first_error_ = 0;
  int last_code_ = 0;
  uint64_t last_number_ = 0;
};

// The answer of one get, copied to where its caller wants it.
class CopySink final : public AnswerSink {
 public:
  CopySink(void* to, size_t room) : to_(static_cast<char*>(to)), room_(room) {}
  void on_answer(const Call& call, const op::Result& result) override;

  bool is_over = false;
  int code = 0;
  size_t length = 0;

 private:
  char* const to_;
  const size_t room_;
};

class Queue final : public AnswerSink {
 public:
  explicit Queue(Buffers& buffers) : buffers_(buffers) {}
  ~Queue();

  void on_answer(const Call& call, const op::Result& result) override;
  // One call of egret_reap() or egret_wait(). It first gives the caller the results that were kept; while it lives, answers that
  // come are written behind them, straight into the caller's array, until that is full.
  class HandOut {
   public:
    HandOut(Queue& queue, egret_result* to, size_t room);
    // Without accept() an exception ends the call: views go back, and the results say EGRET_E_BROKEN.
    ~HandOut();
    HandOut(const HandOut&) = delete;
    HandOut& operator=(const HandOut&) = delete;

    size_t count() const { return queue_.given_; }
    // The results are the caller's now. Returns how many.
    int accept() {
      queue_.room_ = 0;
      return static_cast<int>(std::exchange(queue_.given_, 0));
    }

   private:
    Queue& queue_;
  };

  // An op that cannot be sent at all.
  void add_failed(int code, uint64_t tag);
  void submitted() { ++under_way_; }

  size_t size() const { return done_.size() - taken_; }
  // Those submitted, less those handed out.
  size_t pending() const { return under_way_ + size(); }
  size_t under_way() const { return under_way_; }
  void forgotten(size_t count) { under_way_ -= count; }
  size_t forget(uint64_t tag);
  // Not without any.
  egret_result take();

 private:
  Buffers& buffers_;
  std::vector<egret_result> done_;  // those that wait, from taken_ on
  size_t taken_ = 0;
  static constexpr size_t kMostTaken =
      64;  // results that were taken and still lie in done_, unless more are left behind them
  size_t under_way_ = 0;
  ResultArray to_;  // of the HandOut
  size_t room_ = 0;
  size_t given_ = 0;
};

}  // namespace egret::client
