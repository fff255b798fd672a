// Decides whether to poll for a while before sleeping, on this host and under this load. A wait that ends while it is
// polled saves a sleep and a wake-up; a wait that ends later costs the polling besides. If fewer than half of the
// polled waits ended in time, only every kProbe-th wait is polled, to find out whether that has changed.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>

namespace egret::rpc {

class SpinJudge {
 public:
  static constexpr uint32_t kProbe = 32;

  // A wait begins: whether to poll. False: sleep at once, and do not call ends().
  bool begins() {
    if (paid_ >= kWorth) return true;
    if (++passed_over_ < kProbe) return false;
    passed_over_ = 0;
    return true;
  }
  // A wait that was polled is over. `paid`: it ended in time.
  void ends(bool paid) { paid_ += (paid ? kAll - paid_ : -paid_) / kMemory; }

 private:
  static constexpr int32_t kAll = 1 << 16;
  static constexpr int32_t kWorth = kAll / 2;
  static constexpr int32_t kMemory = 8;  // about so many waits count; older ones count little

  int32_t paid_ = kAll;  // share of the waits that ended in time
  uint32_t passed_over_ = 0;
};

}  // namespace egret::rpc
