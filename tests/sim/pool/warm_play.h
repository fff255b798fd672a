// What a simulated proxy needs to bring values to the owners of keys that moved: each partition told that a change is warm
// (op::AdminVerb::kWarm) before keys go by the next members, and memory for large values that is refused now and then.
// Single-threaded.
#pragma once

#include <cstring>

#include "pool/warm/pulls.h"
#include "rng.h"
#include "rpc/client_session.h"

namespace egret::sim {

class SimPullMemory final : public pool::PullMemory {
 public:
  explicit SimPullMemory(Rng& rng) : rng_(rng) {}
  bool take(uint64_t) override { return !rng_.percent(10); }
  void give(uint64_t) override {}

 private:
  Rng& rng_;
};

// One partition. Lives as long as its session may answer, and is told when that is gone.
class WarmTelling final : private rpc::Waiter {
 public:
  WarmTelling(rpc::ClientSession& session, uint32_t lane) : session_(session), lane_(lane) {
    constexpr uint64_t kSeconds = 3600;
    std::memcpy(seconds_, &kSeconds, sizeof kSeconds);
  }

  void on_gone(const rpc::ClientSession& gone) { is_over_ |= &session_ == &gone; }
  // Asks, if nothing is under way. Returns whether it is over.
  bool go_on() {
    if (is_over_ || is_asking_) return is_over_;
    if (!session_.is_open()) return is_over_ = true;
    op::Op op;
    op.code = op::OpCode::kAdmin;
    op.group = static_cast<uint8_t>(op::AdminVerb::kWarm);
    op.value = {seconds_, sizeof seconds_};
    is_asking_ = session_.lanes()[lane_].append(op, this);
    return false;
  }

 private:
  void on_result(const op::Result&) override { is_over_ = true; }

  rpc::ClientSession& session_;
  const uint32_t lane_;
  char seconds_[sizeof(uint64_t)];
  bool is_asking_ = false, is_over_ = false;
};

}  // namespace egret::sim
