// Decides whether a thread that waits lets other threads of its CPU run once, before it sleeps. Where more threads of
// Egret are at work than there are CPUs, what it waits for is there when it runs again, and it has neither slept nor been
// woken, which costs both sides more than a get does. Where nobody else wants the CPU, a yield is a system call in vain.
// Beside threads that compute it lasts for their time slices, while a thread that sleeps is woken at once.
//
// So it yields as long as an eighth of the yields bring something, and they last less than kMostNs on average. Else only
// now and then, to find out whether that has changed: every kPassedOver waits, and while yields last long ever more rarely,
// up to every kMostPassedOver. What comes within kLeastNs would have come without a yield: nobody else has run.
// Owned and used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::rpc {

class YieldJudge {
 public:
  static constexpr uint64_t kLeastNs = 1'500;  // two switches of threads take as long
  static constexpr uint64_t kMostNs =
      1'000'000;  // a time slice is longer; 200 processes take turns on two CPUs in half of it
  static constexpr uint32_t kPassedOver = 255;
  static constexpr uint32_t kMostPassedOver = 4095;

  // A wait is about to sleep: whether to yield first. True: call ends() afterwards.
  bool begins() {
    if ((paid_ >= kWorth && mean_ns_ <= static_cast<int64_t>(kMostNs)) || to_pass_over_ == 0) return true;
    --to_pass_over_;
    return false;
  }
  // `came`: something that was waited for, after so many ns.
  void ends(bool came, uint64_t took_ns) {
    const bool paid = came && took_ns >= kLeastNs;
    paid_ += (paid ? kAll - paid_ : -paid_) / kMemory;
    mean_ns_ += (static_cast<int64_t>(std::min(took_ns, 16 * kMostNs)) - mean_ns_) / kMemory;
    passed_over_ = took_ns > kMostNs ? std::min(2 * passed_over_ + 1, kMostPassedOver) : passed_over_ / 4;
    to_pass_over_ = paid ? passed_over_ : std::max(passed_over_, kPassedOver);
  }

 private:
  static constexpr int32_t kAll = 1 << 16;
  static constexpr int32_t kWorth = kAll / 8;
  static constexpr int32_t kMemory = 8;  // about so many yields count; older ones count little

  int32_t paid_ = kAll;  // share of the yields that brought something
  int64_t mean_ns_ = 0;
  uint32_t passed_over_ = 0;  // waits between two tries, for how long they last
  uint32_t to_pass_over_ = 0;
};

}  // namespace egret::rpc
