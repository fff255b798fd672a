// Pins a partition thread to the CPU of the worker that it serves, for hosts that have no CPU for the thread alone. On
// two CPUs, worker and partition would wake each other for every few requests, and each wake-up costs as much as
// several requests; on one CPU they take turns, and a turn serves all that has come in meanwhile.
//
//   ring ─▶ SlotPoller::clients_cpu(): what the workers say (ServerEndpoint::client_cpu) ─▶ heard() ─▶ this thread is pinned
//
// The scheduler may move the worker; the thread follows. Only rings count: a thread that is never rung never sleeps,
// and needs a CPU of its own. Whether a thread that sleeps on a shared CPU would never sleep on its own CPU cannot be
// seen while it shares; so the pinning ends after kStay rings, and begins again if rings go on coming from that CPU.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <vector>

namespace egret::backend {

class CpuFollower {
 public:
  // After so many rings in a row from the same CPU the thread is pinned to it.
  static constexpr uint32_t kSure = 64;
  // After so many rings it is let go; a busy worker rings so often in some seconds.
  static constexpr uint32_t kStay = 16 * 1024;
  // After so many calls of does_not_sleep() in a row it is let go.
  static constexpr uint32_t kSleepless = 16;

  // `cpus`: where the thread may run.
  explicit CpuFollower(std::vector<int> cpus);

  // To be called by the thread when a ring has woken it. `cpu`: where all its clients run; -1: unknown, or on several,
  // so that the thread may run anywhere. A CPU that is not one of `cpus` counts as -1.
  void heard(int cpu);
  // To be called by the thread now and then while it always has something to do.
  void does_not_sleep();

 private:
  void move_to(int cpu);

  const std::vector<int> cpus_;
  int taken_ = -1;   // pinned to; -1: not pinned
  int wished_ = -1;  // where the last rings came from
  uint32_t times_wished_ = 0;
  uint32_t stayed_ = 0;     // rings since the last move
  uint32_t sleepless_ = 0;  // calls of does_not_sleep() since the last ring
};

}  // namespace egret::backend
