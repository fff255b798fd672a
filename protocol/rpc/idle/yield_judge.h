// Decides whether a thread that waits for an answer lets other threads of its CPU run once, before it sleeps. Where many more
// processes ask than there are CPUs, the answer is there when it runs again: it has neither slept nor been woken, which costs
// both sides more than a get does. Elsewhere a thread that sleeps is woken sooner than one that yields runs again: beside
// threads that compute, or that sleep, a yield lasts for their time slices.
//
// So it yields only while sleeps last long, which shows that many want the CPU, and while waits with a yield are shorter than
// those with a sleep. It takes the other way now and then, to find out whether that has changed.
// Owned and used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::rpc {

class YieldJudge {
 public:
  static constexpr int64_t kLongSleepNs = 100'000;  // 16 processes on two CPUs sleep for half of it, 32 for more
  static constexpr uint32_t kYieldsPerSleep = 16;
  static constexpr uint32_t kSleepsPerYield = 256;

  // A wait is about to sleep: whether to yield first. True: call yielded() afterwards.
  bool begins() {
    if (sleep_ns_ < kLongSleepNs) return false;
    const bool is_worth = yield_ns_ <= sleep_ns_;
    if (++waits_ < (is_worth ? kYieldsPerSleep : kSleepsPerYield)) return is_worth;
    waits_ = 0;
    return !is_worth;
  }
  // After so many ns. `came`: something that was waited for; else the wait goes on with a sleep.
  void yielded(bool came, uint64_t took_ns) {
    const auto took = static_cast<int64_t>(std::min(took_ns, kMostYieldNs));
    yield_ns_ += (took + (came ? 0 : sleep_ns_) - yield_ns_) / kYieldMemory;
  }
  // It has slept for so long.
  void slept(uint64_t took_ns) {
    sleep_ns_ += (static_cast<int64_t>(std::min(took_ns, kMostSleepNs)) - sleep_ns_) / kSleepMemory;
  }

 private:
  static constexpr uint64_t kMostYieldNs = 16'000'000;
  static constexpr uint64_t kMostSleepNs = 1'000'000;  // a few long sleeps do not show that many want the CPU
  static constexpr int64_t kYieldMemory = 32;          // about so many count; older ones count little
  static constexpr int64_t kSleepMemory = 128;

  int64_t yield_ns_ = 0;  // means of waits with a yield and of sleeps
  int64_t sleep_ns_ = 0;
  uint32_t waits_ = 0;  // since the other way was taken
};

}  // namespace egret::rpc
