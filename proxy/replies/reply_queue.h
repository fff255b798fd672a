// The answers of one connection, in the order of its commands, whatever the order of results.
//
//   make/push ─▶ Reply, Reply, … ─ the head has its answer ─▶ output; repeat until a head has none
//
// The result of the head is written to the output at once; other results are rendered and kept in their Reply. A value
// that would exceed the connection's memory limit is dropped, and fetched again when its Reply is the head.
// Memory: charged to the connection. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "proxy/client/output_queue.h"
#include "proxy/replies/connection_memory.h"
#include "proxy/replies/reply.h"

namespace egret::proxy {

// Is called when a reply left the queue or the output grew.
class ReplyObserver {
 public:
  virtual void on_output() = 0;    // there are bytes to send
  virtual void on_progress() = 0;  // a reply was answered
  // The first result of a Reply with `observed`.
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
  // Answers that are known already; written at once if nothing is before them.
  void push_text(std::string_view text, uint32_t command = 0);  // static text
  void push_bytes(std::string_view bytes);                      // copied
  // END of a classic retrieval: it goes with the answer of the last key, or is written at once if all keys are answered.
  void push_end(uint32_t command);
  // An error line, or packet. In a long retrieval's line it stands in the place of END (memcache/parser.h).
  void push_error(std::string_view bytes, uint32_t command);
  // A filled-in Reply whose op is not sent: answered as if it had this result.
  void push_answered(Reply* reply, const op::Result& result);
  // A key whose backend cannot be reached: the line replaces the rest of its retrieval's answer.
  void push_failure(std::string_view line, uint32_t command);
  // The same, of a key that its client may not have: no failure of ours.
  void push_refusal(std::string_view line, uint32_t command);

  bool empty() const { return head_ == nullptr; }
  // Whether the last reply belongs to a classic retrieval, or the queue is empty.
  bool ends_in_retrieval() const { return tail_ == nullptr || tail_->command != 0; }
  size_t size() const { return size_; }
  // Whether an op on this key must wait: a change waits for an unanswered get (whose value may be large, and be read in
  // pieces); every op waits for a get of a large value, and
  // for a reply that holds the key.
  bool must_wait(uint64_t hash, bool is_change) const;
  // Continues when a large value waited for large_value_memory, or for the client to read.
  void on_budget();
  void on_limits();  // the limits of memory may have been raised
  void on_sent();

 private:
  friend class Reply;

  void on_result(Reply& reply, const op::Result& result);
  bool waits_for_pull(Reply& reply);
  void let_key_go(Reply& reply);
  void count(const Reply& reply, op::ResultCode code);
  void on_key_result(Reply& reply, const op::Result& result);
  void write_no_value(Reply& reply, const op::Result& result);
  bool on_large_length(Reply& reply, rpc::LargeGet& get, uint32_t length);
  void on_large_done(Reply& reply, rpc::LargeGet& get);
  void write_value(Reply& reply, const op::Result& result);
  bool send_from_slot(Reply& reply, const op::Result& result);
  void send_loan(Reply& reply, const op::Result& result);
  void keep_loan(Reply& reply, op::LoanRef loan);
  void drop_loan(Reply& reply);
  void lend(const Reply& reply, op::LoanRef loan);
  void send_value(Reply& reply, std::string_view key, const op::Result& result, Lender lender);
  void write_line(Reply& reply, const op::Result& result);
  // Memory to write an answer to: the output's, or the reply's own.
  struct Room {
    char* at;
    bool is_output;
  };
  Room room_for(Reply& reply, size_t bound);
  void written(Reply& reply, Room room, const char* end);
  void charge(Reply& reply, size_t bytes);
  bool is_left_out(const Reply& reply) const { return reply.command != 0 && reply.command == failed_command_; }
  bool may_keep_at_limit(const Reply& reply) const;
  void read_again_later(Reply& reply, const op::Result& result);
  void give_large();
  void fail_command(Reply& reply, std::string_view line);
  void answered(Reply& reply);
  void advance();
  void write_ready(Reply& reply);
  void ask_again_behind(const Reply& reply, std::string_view key);
  void begin_large(Reply& reply, std::string_view key);
  void make_large_get(Reply& reply);
  void start_large(Reply& reply);
  void pop();

  ReplyPool& pool_;
  OutputQueue& output_;
  ConnectionMemory& memory_;
  ReplyObserver& observer_;
  Reply* head_ = nullptr;
  Reply* tail_ = nullptr;
  size_t size_ = 0;
  uint32_t waiting_keys_ = 0;    // retrieval replies without a result
  uint32_t holding_ = 0;         // unanswered replies in state kLarge or with `holds_key`
  uint32_t failed_command_ = 0;  // the retrieval that an error line answered: its further replies are dropped
  uint64_t borrowed_ = 0;        // bytes of the loans that replies keep
  uint64_t large_taken_ = 0;     // bytes of large_value_memory for the value that is being fetched or sent
  bool waits_for_budget_ = false;
  bool is_advancing_ = false;  // advance() runs, and
  bool has_advanced_ = false;  // looks again
};

}  // namespace egret::proxy
