// One op under way, from submit to its answer. It is the waiter of the op's lane, and the owner of what a value that does
// not fit a slot needs.
//
//   kOneMessage ─ answered whole ─▶ over                         (get, set, delete, arithmetic that fit a slot)
//      └ a value that is longer than its answer ─▶ kFetching ─ LargeGet ─▶ over
//   kSending ─ LargeSet, its commit sent ─▶ kOneMessage
//
// Owned by CallPool, which belongs to an engine. Thread: the client's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "op/op.h"
#include "rpc/client_lane.h"
#include "rpc/large/large_get.h"

namespace egret::client {

class Call;
class Engine;
class Upload;

// Whoever submits ops.
class AnswerSink {
 public:
  // The op is over. `result.value` and `result.further` are valid during the call. Nothing may be submitted in it.
  virtual void on_answer(const Call& call, const op::Result& result) = 0;

 protected:
  ~AnswerSink() = default;
};

class Call final : public rpc::Waiter, public rpc::LargeGetOwner {
 public:
  enum class State : uint8_t { kFree, kOneMessage, kFetching, kSending };

  explicit Call(Engine& engine);
  ~Call();

  // What the submitter has given, for the sink.
  AnswerSink* sink = nullptr;  // null: nobody wants the answer any more
  void* context = nullptr;
  uint64_t tag = 0;

  State state() const { return state_; }
  // Whether it may turn out to be a value that is read in several messages: then a change of its key must wait for it.
  bool reads_value() const { return reads_value_; }
  // It was not possible that the op was executed, when no answer came.
  bool is_unsent(const op::Result& result) const {
    return result.code == op::ResultCode::kNotSent || state_ == State::kSending;
  }
  // That of the op for which it stands.
  op::OpCode code() const { return code_; }

 private:
  friend class CallPool;
  friend class Engine;
  friend class Upload;

  void on_result(const op::Result& result) override;
  bool on_length(rpc::LargeGet& get, uint32_t length) override;
  void on_large_get(rpc::LargeGet& get) override;

  Engine& engine_;
  State state_ = State::kFree;
  bool reads_value_ = false;
  op::OpCode code_ = op::OpCode::kPing;
  uint8_t key_length_ = 0;  // reads_value_ only
  uint16_t options_ = 0;
  int64_t exptime_ = 0;
  uint64_t hash_ = 0;
  rpc::ClientSession* session_ = nullptr;
  uint64_t held_bytes_ = 0;  // of large_value_memory
  Call* next_ = nullptr;     // of the free ones
  std::unique_ptr<rpc::LargeGet> fetching_;
  std::unique_ptr<Upload> sending_;
  op::Result first_;  // metadata of the first answer of a value that is fetched in parts
  std::array<char, op::kMaxKeyLength> key_{};
};

// The calls of one engine. They are made in blocks, as they are needed, and stay.
class CallPool {
 public:
  CallPool(Engine& engine, uint32_t most) : engine_(engine), most_(most) {}

  // Null: there are as many as there may be.
  Call* take() {
    if (in_use_ == most_) return nullptr;
    if (free_ == nullptr) [[unlikely]]
      make();
    ++in_use_;
    Call* const call = free_;
    free_ = call->next_;
    return call;
  }
  void give(Call& call) {
    --in_use_;
    call.state_ = Call::State::kFree;
    call.next_ = free_;
    free_ = &call;
  }
  uint32_t in_use() const { return in_use_; }
  bool has_room_for(uint32_t calls) const { return calls <= most_ - in_use_; }
  template <typename Visit>
  void for_each_in_use(Visit visit) {
    for (const auto& call : calls_) {
      if (call->state_ != Call::State::kFree) visit(*call);
    }
  }

 private:
  void make();

  Engine& engine_;
  const uint32_t most_;
  uint32_t in_use_ = 0;
  Call* free_ = nullptr;
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace egret::client
