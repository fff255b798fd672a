// Whether polling for a while before going to sleep pays on this host, under this load. Judged from what came of it: a
// wait that ends while it is polled for has saved a sleep and a wake-up, one that ends later has cost the polling on
// top of them. Where less than half of the waits ended in time, only every kProbe-th is polled for, to see whether that
// has changed.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>

namespace egret::rpc {

class SpinJudge {
 public:
  static constexpr uint32_t kProbe = 32;

  // A wait begins. False: sleep at once, and do not call ends().
  bool begins() {
    if (paid_ >= kWorth) return true;
    if (++passed_over_ < kProbe) return false;
    passed_over_ = 0;
    return true;
  }
  // A wait that was polled for is over. `paid`: it ended before the patience did.
  void ends(bool paid) { paid_ += (paid ? kAll - paid_ : -paid_) / kMemory; }

 private:
  static constexpr int32_t kAll = 1 << 16;
  static constexpr int32_t kWorth = kAll / 2;
  static constexpr int32_t kMemory = 8;  // waits, about: what was long ago counts little

  int32_t paid_ = kAll;  // share of the waits that ended in time
  uint32_t passed_over_ = 0;
};

}  // namespace egret::rpc
