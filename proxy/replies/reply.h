// One pending answer: every command, and every key of a retrieval, has one, made when the command is read. The answer of
// a classic retrieval's last key ends with END.
//
//   kWaiting ──result──▶ kReady ──at the head of the queue (reply_queue.h)──▶ output, by a loan's pieces if there is one
//       ├── it missed, and its key has moved here: pulled (pool/warm), and asked again
//       └── its value is large, or may not be kept ──▶ kLarge ──at the head: fetched whole, sent from slots──▶ output
//
// Memory: Replies come from the worker's pool and go back when answered. Thread: the worker's.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "memcache/answer.h"
#include "op/loan.h"
#include "op/op.h"
#include "pool/warm/pulls.h"
#include "proxy/commands/observe.h"
#include "proxy/report/proxy_stats.h"
#include "rpc/client_lane.h"
#include "rpc/large/large_get.h"
#include "rpc/session_ref.h"

namespace egret::proxy {

class Reply;
class ReplyQueue;

class ReplyPool {
 public:
  // `now_ns` is the time of the worker's pass; `figures` are the worker's. Both outlive the pool.
  ReplyPool(const uint64_t& now_ns, RequestFigures& figures) : now_ns_(now_ns), figures_(figures) {}
  // Gets that miss ask them, while a change of members is warm. They outlive the replies.
  void set_pulls(pool::Pulls& pulls) { pulls_ = &pulls; }
  ~ReplyPool();
  Reply* take();
  void give(Reply* reply);
  // Number of Replies in use; for tests and accounting.
  size_t in_use() const { return in_use_; }

 private:
  friend class ReplyQueue;

  const uint64_t& now_ns_;
  RequestFigures& figures_;
  pool::Pulls* pulls_ = nullptr;
  std::vector<Reply*> free_;
  size_t in_use_ = 0;
};

class Reply final : public rpc::Waiter, public rpc::LargeGetOwner, public pool::PullWaiter {
 public:
  enum class State : uint8_t { kWaiting, kLarge, kReady };

  void on_result(const op::Result& result) override;
  bool on_length(rpc::LargeGet& get, uint32_t length) override;
  void on_large_get(rpc::LargeGet& get) override;
  bool on_pulled(bool may_be_there) override;

  // The key is written back into the answer. The request slot still holds it then, but over shared memory the backend can
  // change what lies there, and gives its pages back when the session ends: so it is copied.
  void keep_key(std::string_view bytes) {
    EGRET_DCHECK(bytes.size() <= op::kMaxKeyLength);
    if (!bytes.empty()) std::memcpy(own_key_.get(), bytes.data(), bytes.size());
    key = {own_key_.get(), bytes.size()};
  }

  // Set by the caller of make().
  memcache::Question question;
  bool is_key = false;          // may be answered by a value
  bool is_read = false;         // its op is a get
  bool holds_key = false;       // ops on its key wait for its answer, whichever they are
  bool ends_retrieval = false;  // END follows its answer
  int64_t get_exptime = 0;      // of the key's op
  uint32_t expected = 0;        // bytes of its result, if it is as long as others were
  uint32_t command = 0;         // the same for all keys and END of one classic retrieval; 0: another command
  uint64_t asked_ns = 0;        // when the request was read; only the request's last reply has it, others have 0
  uint64_t hash = 0;            // of the key, if it has one
  uint64_t owner = 0;           // is_key: the op's
  std::string_view key;         // the op's
  std::string_view text;        // static; if set, the answer whatever the result is
  rpc::SessionRef session;
  std::unique_ptr<Observed> observed;  // null: nobody watches
  std::unique_ptr<op::Op>
      may_miss;  // while keys' values move: the get, to be asked again if it misses; without its key

 private:
  friend class ReplyQueue;
  friend class ReplyPool;

  ReplyQueue* queue_ = nullptr;  // null: the connection is gone, nobody reads the answer
  ReplyPool* pool_ = nullptr;
  Reply* next_ = nullptr;
  State state_ = State::kWaiting;
  bool started_ = false;                  // kLarge: the value is being fetched
  bool rereads_ = false;                  // kLarge: a value that was dropped is fetched again, and may have changed
  bool asked_again_ = false;              // after a pull
  bool has_value_ = false;                // kReady: its answer is a value
  bool failed_ = false;                   // kReady: `text` replaces the whole command's answer
  op::LoanRef loan_;                      // kReady: the value, behind the head in stash_; its store lends it
  size_t charged_ = 0;                    // bytes charged to the connection's memory
  std::unique_ptr<rpc::LargeGet> large_;  // kLarge and at the head: so a connection has one
  const std::unique_ptr<char[]> own_key_ = std::make_unique_for_overwrite<char[]>(op::kMaxKeyLength);
  std::string stash_;   // kReady: the rendered answer; kLarge: the key
  op::Result partial_;  // kLarge: the first result; the last member, since small answers do not touch it
};

}  // namespace egret::proxy
