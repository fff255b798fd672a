// One op for every partition of every backend (flush_all, stats, stats reset). It is sent to all backends that can be
// reached; it is over when all have answered or failed; it merges statistics as they come. No backend waits for
// another. A flush without a delay goes to those who stand in for an absent backend, too, in its place: it is then flushed
// before it returns.
//
//   FanOut ─┬─ Share (a backend) ─┬─ Part (a lane) ─ result
//           │                     └─ Part           …
//           └─ Share: not reached
//
// Thread: the worker's. It deletes itself when it is over; an owner that is destroyed earlier calls orphan().
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "op/op.h"
#include "op/stats.h"
#include "pool/pool.h"
#include "rpc/session_ref.h"

namespace egret::pool {

class FanOut;

// Indexed by size class, then by ClassField. Classes above the largest one in use may be missing.
using ClassStats = std::vector<std::array<uint64_t, op::kClassFields>>;

class FanOutOwner {
 public:
  // All have answered or failed. The FanOut is destroyed after this call.
  virtual void on_fan_out(const FanOut& fan_out) = 0;

 protected:
  ~FanOutOwner() = default;
};

class FanOut final {
 public:
  FanOut(const Pool& pool, const op::Op& op, FanOutOwner& owner);

  // May call the owner before it returns.
  void start();
  void orphan() { owner_ = nullptr; }

  // kOk if every backend succeeded, else the failure of the first that did not. The others have executed the op. A pool
  // without members fails as if none could be reached.
  op::ResultCode failure() const;
  size_t backends() const { return shares_.size(); }
  // How many backends answered with all their partitions.
  size_t backends_up() const;
  // A statistic merged over those backends; 0 if none has it, or if another group than kGeneral was requested.
  uint64_t stat(op::StatId id) const;
  // The same of each of those backends by itself. Valid as long as the FanOut is.
  struct Answered {
    const Member& member;
    std::span<const uint64_t> stats;  // indexed by StatId; rows that it does not have are missing or 0
  };
  std::vector<Answered> each() const;
  // The statistics of all size classes, likewise; empty if another group than kSizeClasses was requested.
  ClassStats class_stats() const;
  // AdminVerb::kCheck: the answer of each partition, in the order of the backends.
  std::vector<std::string> answers() const;

 private:
  struct Share;
  // The part of one lane.
  struct Part final : rpc::Waiter {
    Share* share = nullptr;
    uint32_t lane = 0;
    uint64_t cursor = 0;  // stats: where the next page begins
    std::string answer;   // admin: the partition's answer
    void on_result(const op::Result& result) override;
  };
  // The part of one backend.
  struct Share final : rpc::CreditWaiter {
    FanOut* whole = nullptr;
    Member member;
    rpc::SessionRef session;
    uint64_t tag = 0;         // of the absent owner in whose place it is asked
    uint64_t generation = 0;  // of the session whose lanes the parts are
    op::ResultCode failure = op::ResultCode::kOk;
    std::vector<Part> parts;
    std::deque<Part*> unsent;
    std::vector<uint64_t> stats;  // indexed by id
    ClassStats classes;
    void on_credit() override;
    bool is_lost() const { return !session->is_open() || session->lanes().generation() != generation; }
  };

  ~FanOut() = default;
  void send_waiting(Share& share);
  void on_part(Part& part, const op::Result& result);
  void give_up(Part& part, op::ResultCode why);
  // Both merge a page of a part's rows, and return the cursor of its next page.
  void add_share(rpc::ClientSession* session, uint64_t tag);
  void add_flush_shares(const Pool& pool);
  static uint64_t add_rows(const Part& part, std::string_view rows);
  static uint64_t add_class_rows(const Part& part, std::string_view rows);
  void finish_if_done();

  FanOutOwner* owner_;
  op::Op op_;
  const std::string value_;  // the op's value: it may be sent after the owner is destroyed
  std::deque<Share> shares_;
  size_t unanswered_ = 0;  // number of parts without an answer
};

}  // namespace egret::pool
