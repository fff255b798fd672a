// The watchdog of whoever started this process (systemd: WatchdogSec=, told in WATCHDOG_USEC): it is pinged for as long
// as every thread goes on, so that a process in which one hangs is restarted.
//
//   supervising thread: beat() ── all answered? ─▶ WATCHDOG=1 (base/notify.h); asks again, wakes the threads
//   each other thread:  answer(number), when it is woken, from its loop
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/time.h>

namespace egret::base {

class Watchdog {
 public:
  // Threads are numbered from 0; the supervising one, whose calling beat() is its answer, is not counted.
  explicit Watchdog(size_t threads);

  bool is_watched() const { return interval_us_ != 0; }
  // How often beat() is to be called: a quarter of the time in which a ping is expected.
  timeval interval() const;
  // Supervising thread. Pings if every thread has answered since the last call, and asks anew; whoever calls wakes them
  // then. False: one has not answered yet.
  bool beat();
  // Any thread.
  void answer(size_t thread) { answered_[thread].store(true, std::memory_order_relaxed); }

 private:
  const uint64_t interval_us_;  // 0: nobody watches
  std::vector<std::atomic<bool>> answered_;
};

}  // namespace egret::base
