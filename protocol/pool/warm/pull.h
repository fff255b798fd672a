// One key's value, read at the owner before and stored at the present one.
//
//   get (peek) at the owner before ─ hit ─▶ fill at the present owner ─ its answer ─▶ the waiters go on, in their order
//        │ large: LargeGet, whole                └ large: LargeSet, in mode fill
//        └ missed, stale, failed; no memory for it ────────────────────────────────▶ the waiters go on: nothing was there
//
// Made and owned by Pulls. Thread: the worker's. Memory: a small value is copied only while it waits for credit; a large
// one is copied whole, and charged to PullMemory until it is stored.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "pool/pool.h"
#include "rpc/large/large_get.h"
#include "rpc/large/large_set.h"
#include "rpc/session_ref.h"

namespace egret::pool {

class Pulls;

// Whoever wants a key's value to be at its present owner.
class PullWaiter {
 public:
  // The pull is over. `may_be_there`: the present owner may have the key now, else it has it no more than before. False:
  // there is no credit there; called again when there is.
  virtual bool on_pulled(bool may_be_there) = 0;

 protected:
  ~PullWaiter() = default;
};

class Pull final : private rpc::Waiter, private rpc::CreditWaiter, private rpc::LargeGetOwner {
 public:
  Pull(Pulls& pulls, std::string_view key, rpc::ClientSession& from, const Route& to);
  ~Pull();
  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

  void add(PullWaiter* waiter) { waiters_.push_back(waiter); }
  void remove(PullWaiter* waiter) { std::erase(waiters_, waiter); }
  // Once; then it calls Pulls::on_over() after the last waiter went on, and is destroyed in that call.
  void start();
  // Without asking: nothing was there.
  void give_up() { go_on(false); }

  const std::string& key() const { return key_; }
  rpc::ClientSession& from() const { return *from_; }
  rpc::ClientSession& to() const { return *to_; }

 private:
  // kGet: asks the owner before. kFill: stores. kOver: waiters go on.
  enum class State : uint8_t { kGet, kFill, kOver };

  void on_result(const op::Result& result) override;
  void on_credit() override;
  bool on_length(rpc::LargeGet& get, uint32_t length) override;
  void on_large_get(rpc::LargeGet& get) override;
  op::Op get() const;
  void ask();
  void on_value(const op::Result& result);
  bool make_fill(const op::Result& result);
  void begin_large(const op::Result& partial);
  void send_fill();
  void send_large();
  void fail();
  void go_on(bool may_be_there);
  void resume();
  void wait_for_credit(rpc::ClientSession& session);

  Pulls& pulls_;
  const std::string key_;
  const rpc::SessionRef from_;
  const rpc::SessionRef to_;
  const uint64_t
      to_generation_;  // the session to which it may be filled: a later one may be with a backend that began anew
  const uint64_t to_hash_;
  State state_ = State::kGet;
  std::deque<PullWaiter*> waiters_;
  bool may_be_there_ = false;
  rpc::ClientSession* waits_for_ = nullptr;  // its credit
  op::Op fill_;                              // without its key and value
  std::string value_;                        // that waits for credit
  std::unique_ptr<rpc::LargeGet> large_get_;
  rpc::LargeSet* large_set_ = nullptr;  // deletes itself after release() or abandon()
  std::unique_ptr<char[]> large_value_;
  uint32_t large_sent_ = 0;
  uint64_t charged_ = 0;  // bytes of PullMemory
};

}  // namespace egret::pool
