// The places in a connection's answers: every command (every key of a retrieval) has one, made when the command is
// read, and answers leave in the order of the places, whatever order the results come in.
//
//   Reply: kWaiting ──result──▶ kReady ──at the head of the queue──▶ output
//              └──large value──▶ kLarge ──at the head: fetched whole, sent from the slots──▶ output
//
// A result that comes for the head is written to the output at once; others are kept rendered in the Reply.
// Memory: Replies come from the worker's pool and go back when answered. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memcache/answer.h"
#include "op/op.h"
#include "proxy/client/output_queue.h"
#include "proxy/commands/observe.h"
#include "proxy/report/proxy_stats.h"
#include "rpc/client_lane.h"
#include "rpc/large_get.h"

namespace egret::proxy {

class Reply;
class ReplyQueue;

class ReplyPool {
 public:
  // `now_ns` is the worker's, of this pass; the figures are its, too. Both outlive the pool.
  ReplyPool(const uint64_t& now_ns, RequestFigures& figures) : now_ns_(now_ns), figures_(figures) {}
  ~ReplyPool();
  Reply* take();
  void give(Reply* reply);
  // Replies that are out; for tests and accounting.
  size_t in_use() const { return in_use_; }

 private:
  friend class ReplyQueue;

  const uint64_t& now_ns_;
  RequestFigures& figures_;
  std::vector<Reply*> free_;
  size_t in_use_ = 0;
};

class Reply final : public rpc::Waiter, public rpc::LargeGetOwner {
 public:
  enum class State : uint8_t { kWaiting, kLarge, kReady };

  void on_result(const op::Result& result) override;
  void on_large_get(rpc::LargeGet& get) override;

  // Set by whoever makes the place.
  memcache::Question question;
  bool is_key = false;      // may be answered by a value
  bool is_read = false;     // its op is a get
  int64_t get_exptime = 0;  // of the key's op
  uint32_t command = 0;     // keys and END of one classic retrieval have the same; 0: what is answered stands alone
  uint64_t asked_ns = 0;    // when the request was read that ends with this place; 0: none does
  uint64_t hash = 0;        // of the key, if it has one
  std::string_view key;     // of the op; lies in the request slot while kWaiting
  std::string_view text;    // static: the answer, whatever the result will be
  rpc::ClientSession* session = nullptr;
  std::unique_ptr<Observed> observed;  // null: nobody wants to know

 private:
  friend class ReplyQueue;
  friend class ReplyPool;

  ReplyQueue* queue_ = nullptr;  // null: the connection is gone, nobody reads the answer
  ReplyPool* pool_ = nullptr;
  Reply* next_ = nullptr;
  State state_ = State::kWaiting;
  bool started_ = false;  // kLarge: being put together
  bool failed_ = false;   // kReady: `text` stands in for the whole command
  std::string stash_;     // kReady: rendered
  op::Result partial_;    // kLarge: what the first result said
  std::unique_ptr<rpc::LargeGet> large_;
};

// Told when something left the queue or the output grew.
class ReplyObserver {
 public:
  virtual void on_output() = 0;    // bytes to send
  virtual void on_lent() = 0;      // bytes to send in this call: some of them are only lent (OutputQueue::lend)
  virtual void on_progress() = 0;  // a place was answered
  // The first result of a place whose `observed` is there.
  virtual void on_observed(const Observed& observed, const op::Result& result) = 0;

 protected:
  ~ReplyObserver() = default;
};

// Counts bytes of large values that are being put together, over all connections of a worker. Those that find no room
// wait their turn.
class LargeValueBudget {
 public:
  explicit LargeValueBudget(uint64_t limit) : limit_(limit) {}
  // What is taken stays taken.
  void set_limit(uint64_t limit) { limit_ = limit; }
  // One value is always let through, however large.
  bool take(uint64_t bytes);
  void give(uint64_t bytes);
  void wait(ReplyQueue* queue);
  void stop_waiting(const ReplyQueue* queue);

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
  std::vector<ReplyQueue*> waiting_;
};

class ReplyQueue {
 public:
  ReplyQueue(ReplyPool& pool, OutputQueue& output, LargeValueBudget& budget, ReplyObserver& observer)
      : pool_(pool), output_(output), budget_(budget), observer_(observer) {}
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
  // Goes on where a large value waited for the budget, or for the client to read what it has got.
  void on_budget();
  void on_drained() { go_on(); }

 private:
  friend class Reply;

  void on_result(Reply& reply, const op::Result& result);
  void count(const Reply& reply, op::ResultCode code);
  void on_key_result(Reply& reply, const op::Result& result);
  void write_no_value(Reply& reply, const op::Result& result);
  void on_large_done(Reply& reply, rpc::LargeGet& get);
  void write_value(Reply& reply, const op::Result& result);
  void send_value(Reply& reply, std::string_view key, const op::Result& result);
  void write_line(Reply& reply, const op::Result& result);
  char* room_for(Reply& reply, size_t bound);
  void written(Reply& reply, const char* end);
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
  LargeValueBudget& budget_;
  ReplyObserver& observer_;
  Reply* head_ = nullptr;
  Reply* tail_ = nullptr;
  size_t size_ = 0;
  uint32_t waiting_keys_ = 0;    // retrieval places without a result
  uint32_t large_ = 0;           // places in state kLarge
  uint32_t failed_command_ = 0;  // the retrieval that was answered by an error line: the rest of it is left out
  uint64_t budget_taken_ = 0;
  char* room_ = nullptr;    // see room_for()
  bool in_output_ = false;  // it is the output's, not the reply's stash
  bool waits_for_budget_ = false;
};

}  // namespace egret::proxy
