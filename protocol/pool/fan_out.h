// One op that concerns every partition of every backend (flush_all, stats, stats reset): sent to all that can be
// reached, over when all have answered or failed, statistics put together on the way. No backend waits for another.
//
//   FanOut ─┬─ Share (a backend) ─┬─ Part (a lane) ─ result
//           │                     └─ Part           …
//           └─ Share: not reached
//
// Thread: the worker's. It deletes itself when over; an owner that goes earlier calls orphan().
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "op/op.h"
#include "op/stats.h"
#include "pool/pool.h"
#include "rpc/client_session.h"

namespace egret::pool {

class FanOut;

// By size class, by ClassField. Classes of larger items than those there are may be left out.
using ClassStats = std::vector<std::array<uint64_t, op::kClassFields>>;

class FanOutOwner {
 public:
  // Each has answered, or failed. The object is gone after this call.
  virtual void on_fan_out(const FanOut& fan_out) = 0;

 protected:
  ~FanOutOwner() = default;
};

class FanOut final {
 public:
  FanOut(const Pool& pool, const op::Op& op, FanOutOwner& owner);

  // May tell the owner at once.
  void start();
  void orphan() { owner_ = nullptr; }

  // kOk when every backend did it, or what the first that did not failed with. The others have done it all the same.
  op::ResultCode failure() const;
  size_t backends() const { return shares_.size(); }
  // Those of which every partition has answered.
  size_t backends_up() const;
  // A statistic over those; 0 if nobody knows it, or group kGeneral was not asked for.
  uint64_t stat(op::StatId id) const;
  // Likewise those of all size classes; empty unless group kSizeClasses was asked for.
  ClassStats class_stats() const;
  // AdminVerb::kCheck: what each partition said, those of the first backend first.
  std::vector<std::string> answers() const;

 private:
  struct Share;
  // One lane's.
  struct Part final : rpc::Waiter {
    Share* share = nullptr;
    uint32_t lane = 0;
    uint64_t cursor = 0;  // stats: where the next page begins
    std::string answer;   // admin: what it said
    void on_result(const op::Result& result) override;
  };
  // One backend's.
  struct Share final : rpc::CreditWaiter {
    FanOut* whole = nullptr;
    rpc::ClientSession* session = nullptr;
    uint64_t generation = 0;  // of the session whose lanes the parts are
    op::ResultCode failure = op::ResultCode::kOk;
    std::vector<Part> parts;
    std::deque<Part*> unsent;
    std::vector<uint64_t> stats;  // by id
    ClassStats classes;
    void on_credit() override;
    bool is_lost() const { return !session->is_open() || session->lanes().generation() != generation; }
  };

  ~FanOut() = default;
  void send_waiting(Share& share);
  void on_part(Part& part, const op::Result& result);
  void give_up(Part& part, op::ResultCode why);
  // Both take a page of a part's rows, and say where its next page begins.
  static uint64_t add_rows(const Part& part, std::string_view rows);
  static uint64_t add_class_rows(const Part& part, std::string_view rows);
  void finish_if_done();

  FanOutOwner* owner_;
  op::Op op_;
  const std::string value_;  // the op's, which may be sent when the owner has gone
  std::vector<Share> shares_;
  size_t unanswered_ = 0;  // parts
};

}  // namespace egret::pool
