// A value too large for a slot on its way to the backend, part by part. Parts are invisible on the backend until the
// commit.
//
//   collect (the client's bytes, while there is memory for them) ─ part* ─ commit (answered through a Reply)
//   stream (no memory: parts go out as they arrive) ─ part* ─ commit                                or      abort
//
// Collected values take turns on their lane, so a slow client holds memory here, never room on the backend.
//
// Thread: the worker's. It deletes itself when it has been abandoned and nothing of it is under way; the connection
// that owns it lets go by finishing (release()) or abandoning it (abandon()).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "op/op.h"
#include "proxy/replies/reply.h"
#include "rpc/client_session.h"

namespace egret::proxy {

// Bytes of values being collected, over all connections of a worker.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}
  bool take(uint64_t bytes) {
    if (used_ > limit_ || bytes > limit_ - used_) return false;
    used_ += bytes;
    return true;
  }
  void give(uint64_t bytes) { used_ -= bytes; }
  // What is taken stays taken.
  void set_limit(uint64_t limit) { limit_ = limit; }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
};

class ValueUpload final : private rpc::Waiter, private rpc::CreditWaiter {
 public:
  // `store` is the op that the whole command amounts to (mode, flags, exptime, cas); its key is copied.
  ValueUpload(rpc::ClientSession& session, const op::Op& store, uint32_t total, uint32_t id);

  ~ValueUpload();

  static constexpr uint32_t kMaxInFlight = 8;  // parts; the lane is others' too

  // Takes memory for the whole value, if the budget has it; then the client's bytes are collected.
  bool collect(ByteBudget& budget);
  bool is_collecting() const { return collected_ != nullptr; }
  void add(std::string_view bytes);
  // Sends what was collected. False: no turn or no credit, try again.
  bool send_collected();

  // Sends as much of `bytes` as there is credit for; returns how much. After a failure everything is taken and dropped.
  size_t send(std::string_view bytes);
  // Opens the upload without a byte, for a value that is known to be refused. False: no credit, try again.
  bool announce();
  // The value's bytes that are still to be sent.
  uint32_t left() const { return total_ - sent_; }
  // What one part may carry: less than this is worth waiting for more.
  uint32_t max_part() const;
  // Sends the commit, whose result goes to `reply`. False: no credit, try again.
  bool commit(Reply* reply);
  // kOk, or what makes a commit pointless: the session was lost. The answer is then the caller's to give.
  op::ResultCode failure() const;

  rpc::ClientSession& session() { return session_; }
  uint64_t hash() const { return store_.hash; }
  const op::Op& store() const { return store_; }

  // The commit has been sent: nothing more to do here.
  void release();
  // The connection is gone or the value was bad: the backend is told to forget the parts.
  void abandon();

 private:
  void on_result(const op::Result& result) override;
  void on_credit() override;
  bool same_session() const { return session_.is_open() && session_.generation() == generation_; }
  op::Op part(std::string_view bytes) const;
  void pass_turn();
  void try_abort();
  void delete_if_done();

  rpc::ClientSession& session_;
  const uint64_t generation_;
  std::string key_;
  op::Op store_;
  const uint32_t total_;
  const uint32_t id_;
  uint32_t sent_ = 0;
  uint32_t in_flight_ = 0;
  ByteBudget* budget_ = nullptr;  // from which `collected_` was taken
  std::unique_ptr<char[]> collected_;
  uint32_t collected_size_ = 0;
  bool announced_ = false;
  bool released_ = false;
  bool abort_pending_ = false;
};

}  // namespace egret::proxy
