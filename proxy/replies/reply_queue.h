// The answers of one connection, in the order of its commands, whatever order the results come in.
//
//   make/push ─▶ Reply, Reply, … ─ the head has its answer ─▶ output, and so on to the next that has none
//
// A result that comes for the head is written to the output at once; others are kept rendered in their Reply. A value
// that would take the connection over its memory limit is not kept: it is fetched again when it is the head's turn.
// Memory: charged to the connection. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "proxy/client/output_queue.h"
#include "proxy/replies/connection_memory.h"
#include "proxy/replies/reply.h"

namespace egret::proxy {

// Told when something left the queue or the output grew.
class ReplyObserver {
 public:
  virtual void on_output() = 0;    // bytes to send
  virtual void on_progress() = 0;  // a place was answered
  // The first result of a place whose `observed` is there.
  virtual void on_observed(const Observed& observed, const op::Result& result) = 0;

 protected:
  ~ReplyObserver() = default;
};

class ReplyQueue {
 public:
  ReplyQueue(ReplyPool& pool, OutputQueue& output, ConnectionMemory& memory, ReplyObserver& observer)
      : pool_(pool), output_(output), memory_(memory), observer_(observer) {}
  ~ReplyQueue();

  // A fresh Reply, not yet in the queue: fill it in, then push() it, or discard() it.
  Reply* make();
  void push(Reply* reply);
  void discard(Reply* reply) { pool_.give(reply); }
  // A place whose answer is known: written at once if nothing is before it.
  void push_text(std::string_view text, uint32_t command = 0);  // static text
  void push_bytes(std::string_view bytes);                      // copied
  // A filled-in place whose op needs no asking: answered as by this result.
  void push_answered(Reply* reply, const op::Result& result);
  // A key that cannot be asked for: the line stands for what is left of its retrieval.
  void push_failure(std::string_view line, uint32_t command);

  bool empty() const { return head_ == nullptr; }
  // Whether what is answered last is a classic retrieval, or nothing.
  bool ends_in_retrieval() const { return tail_ == nullptr || tail_->command != 0; }
  size_t size() const { return size_; }
  // Whether an op on this key must wait: a change behind a get that is unanswered (it may turn out large and be read in
  // pieces), any op behind a get that did turn out large.
  bool must_wait(uint64_t hash, bool is_change) const;
  // Goes on where a large value waited for large_value_memory, or for the client to read what it has got.
  void on_budget();
  void on_sent();

 private:
  friend class Reply;

  void on_result(Reply& reply, const op::Result& result);
  void count(const Reply& reply, op::ResultCode code);
  void on_key_result(Reply& reply, const op::Result& result);
  void write_no_value(Reply& reply, const op::Result& result);
  void on_large_done(Reply& reply, rpc::LargeGet& get);
  void write_value(Reply& reply, const op::Result& result);
  void send_value(Reply& reply, std::string_view key, const op::Result& result, Lender lender);
  void write_line(Reply& reply, const op::Result& result);
  // Memory for an answer that is being written: the output's, or the reply's own.
  struct Room {
    char* at;
    bool is_output;
  };
  Room room_for(Reply& reply, size_t bound);
  void written(Reply& reply, Room room, const char* end);
  void charge(Reply& reply, size_t bytes);
  bool is_left_out(const Reply& reply) const { return reply.command != 0 && reply.command == failed_command_; }
  bool may_keep(const Reply& reply, const op::Result& result) const;
  void read_again_later(Reply& reply, const op::Result& result);
  void give_large();
  void fail_command(Reply& reply, std::string_view line);
  void answered(Reply& reply);
  void advance();
  void write_ready(Reply& reply);
  void ask_again_behind(const Reply& reply, std::string_view key);
  void begin_large(Reply& reply, std::string_view key);
  void go_on();
  void start_large(Reply& reply);
  void pop();

  ReplyPool& pool_;
  OutputQueue& output_;
  ConnectionMemory& memory_;
  ReplyObserver& observer_;
  Reply* head_ = nullptr;
  Reply* tail_ = nullptr;
  size_t size_ = 0;
  uint32_t waiting_keys_ = 0;    // retrieval places without a result
  uint32_t large_ = 0;           // places in state kLarge
  uint32_t failed_command_ = 0;  // the retrieval that was answered by an error line: the rest of it is left out
  uint64_t large_taken_ = 0;     // of large_value_memory: the value that is put together or not sent yet
  bool waits_for_budget_ = false;
};

}  // namespace egret::proxy
