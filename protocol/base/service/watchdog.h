// Pings the supervisor's watchdog (systemd: WatchdogSec=, passed in WATCHDOG_USEC) while every thread makes progress,
// so that a process with a hanging thread is restarted.
//
//   supervising thread: beat() ── all answered? ─▶ WATCHDOG=1 (base/service/notify.h); asks again, wakes the threads
//   each other thread:  answer(number), when it is woken, from its loop
//
// /healthz calls call() and has_answered() itself, at any time; that does not disturb the beats.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace egret::base {

class Watchdog {
 public:
  // Threads are numbered from 0. The supervising thread is not counted: its call of beat() is its answer.
  explicit Watchdog(size_t threads);

  bool is_watched() const { return interval_us_ != 0; }
  // Call beat() this often: a quarter of the time within which the supervisor expects a ping.
  std::chrono::microseconds interval() const { return std::chrono::microseconds(interval_us_); }
  // Supervising thread. If every thread has answered since the last beat(), pings and asks anew; the caller then wakes
  // the threads. False: a thread has not answered yet.
  bool beat();
  // Supervising thread: asks every thread anew and returns the number of this call. The caller then wakes the threads.
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
  const uint64_t interval_us_;  // 0: there is no watchdog
  uint64_t beaten_ = 0;         // the call of the last beat
  std::atomic<uint64_t> calls_{0};
  std::vector<std::atomic<uint64_t>> answered_;  // by thread: the latest call that it has answered
};

}  // namespace egret::base
