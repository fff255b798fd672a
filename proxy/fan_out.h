// One op that concerns every partition of every backend (flush_all, stats, stats reset): sent to all, answered when all
// have answered, statistics added up on the way. Thread: the worker's. It deletes itself when over; an owner that goes
// earlier calls orphan().
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "op/op.h"
#include "op/stats.h"
#include "proxy/router.h"
#include "rpc/client_session.h"

namespace egret::proxy {

class FanOut;

class FanOutOwner {
 public:
  // All have answered, or failure() says why not. The object is gone after this call.
  virtual void on_fan_out(const FanOut& fan_out) = 0;

 protected:
  ~FanOutOwner() = default;
};

class FanOut final : private rpc::CreditWaiter {
 public:
  FanOut(const Router& router, const op::Op& op, FanOutOwner& owner);

  // May tell the owner at once.
  void start();
  void orphan() { owner_ = nullptr; }

  // kOk, or the first result that was not.
  op::ResultCode failure() const { return failure_; }
  // A statistic over all partitions; 0 if nobody knows it.
  uint64_t stat(op::StatId id) const;

 private:
  // One lane's share.
  struct Part final : rpc::Waiter {
    FanOut* whole = nullptr;
    rpc::ClientSession* session = nullptr;
    uint32_t lane = 0;
    uint64_t cursor = 0;  // stats: rows received
    void on_result(const op::Result& result) override;
  };

  ~FanOut() = default;
  void on_credit() override { send_waiting(); }
  void send_waiting();
  void on_part(Part& part, const op::Result& result);
  void add_rows(std::string_view rows);
  void finish_if_done();

  FanOutOwner* owner_;
  op::Op op_;
  std::vector<Part> parts_;
  std::deque<Part*> unsent_;
  size_t unanswered_ = 0;
  op::ResultCode failure_ = op::ResultCode::kOk;
  std::vector<uint64_t> stats_;  // by id
};

}  // namespace egret::proxy
