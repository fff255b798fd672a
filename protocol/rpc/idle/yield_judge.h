// Decides whether a thread that waits for an answer yields its CPU once before it sleeps. Where many more processes ask than
// there are CPUs, the answer has come when the thread runs again. It has neither slept nor been woken, which costs both sides
// more than a get does. Where others compute, or sleep instead of yielding, the thread runs again only after their time slices,
// while one that sleeps is woken at once.
//
// So it yields after sleeps that last long on average, which shows that many want the CPU, and as long as waits with a yield
// are not longer than those sleeps were. After a term of yields it sleeps some times, to find out whether that has changed.
// Owned and used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::rpc {

class YieldJudge {
 public:
  static constexpr int64_t kLongSleepNs =
      100'000;                                     // on two CPUs sleeps of 16 processes last half as long, of 32 longer
  static constexpr uint32_t kYields = 16'384;      // of a term
  static constexpr uint32_t kSleeps = 128;         // between two terms; more if the last one did not pay,
  static constexpr uint32_t kMostSleeps = 16'384;  // at most so many

  // Whether to yield before a sleep. True: call yielded() after it.
  bool begins() {
    if (left_ > 0) {
      --left_;
      return is_yielding_;
    }
    if (is_yielding_) {
      end_term(kSleeps);
    } else if (sleep_ns_ >= kLongSleepNs) {
      is_yielding_ = true;
      left_ = kYields;
      yield_ns_ = sleep_ns_ / 2;
    }
    return is_yielding_;
  }
  // The yield took so many ns. `came`: so did an answer; else the thread sleeps now.
  void yielded(bool came, uint64_t took_ns) {
    const auto took = static_cast<int64_t>(std::min(took_ns, kMostYieldNs));
    yield_ns_ += (took + (came ? 0 : sleep_ns_) - yield_ns_) / kYieldMemory;
    if (yield_ns_ > sleep_ns_) end_term(std::min(2 * sleeps_, kMostSleeps));
  }
  // A sleep took so many ns.
  void slept(uint64_t took_ns) {
    if (is_yielding_) return;  // a sleep after a yield in vain is only part of its wait
    sleep_ns_ += (static_cast<int64_t>(std::min(took_ns, kMostSleepNs)) - sleep_ns_) / kSleepMemory;
  }

 private:
  static constexpr uint64_t kMostYieldNs = 16'000'000;
  static constexpr uint64_t kMostSleepNs = 1'000'000;  // a few long sleeps do not show that many want the CPU
  static constexpr int64_t kYieldMemory = 32;          // about so many count; older ones count little
  static constexpr int64_t kSleepMemory = 64;

  void end_term(uint32_t sleeps) {
    is_yielding_ = false;
    left_ = sleeps_ = sleeps;
  }

  bool is_yielding_ = false;
  uint32_t left_ = kSleeps;    // waits until it decides anew
  uint32_t sleeps_ = kSleeps;  // after the last term
  int64_t yield_ns_ = 0;       // mean of this term's waits with a yield; begins as half of sleep_ns_
  int64_t sleep_ns_ = 0;       // mean of sleeps
};

}  // namespace egret::rpc
