// The watchdog of whoever started this process (systemd: WatchdogSec=, told in WATCHDOG_USEC): it is pinged for as long
// as every thread goes on, so that a process in which one hangs is restarted.
//
//   supervising thread: beat() ── all answered? ─▶ WATCHDOG=1 (base/notify.h); asks again, wakes the threads
//   each other thread:  answer(number), when it is woken, from its loop
//
// Whoever else wants to know (/healthz) calls the roll itself, at any time, and does not disturb the beats.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace egret::base {

class Watchdog {
 public:
  // Threads are numbered from 0; the supervising one, whose calling beat() is its answer, is not counted.
  explicit Watchdog(size_t threads);

  bool is_watched() const { return interval_us_ != 0; }
  // How often beat() is to be called: a quarter of the time in which a ping is expected.
  std::chrono::microseconds interval() const { return std::chrono::microseconds(interval_us_); }
  // Supervising thread. Pings if every thread has answered since the last call, and asks anew; whoever calls wakes them
  // then. False: one has not answered yet.
  bool beat();
  // Supervising thread: asks every thread anew, and returns the number of this call; whoever calls wakes them then.
  uint64_t call();
  bool has_answered(size_t thread, uint64_t call) const {
    return answered_[thread].load(std::memory_order_relaxed) >= call;
  }
  size_t threads() const { return answered_.size(); }
  // Any thread.
  void answer(size_t thread) {
    answered_[thread].store(calls_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  const uint64_t interval_us_;  // 0: nobody watches
  uint64_t beaten_ = 0;         // the call of the last beat
  std::atomic<uint64_t> calls_{0};
  std::vector<std::atomic<uint64_t>> answered_;  // by thread: the latest call that it has answered
};

}  // namespace egret::base
