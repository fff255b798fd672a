// Pins a partition thread to the CPU of the worker that it serves, for hosts that have no CPU for the thread alone. On
// two CPUs, worker and partition would wake each other for every few requests, and each wake-up costs as much as
// several requests; on one CPU they take turns, and a turn serves all that has come in meanwhile.
//
//   ring ─▶ SlotPoller::clients_cpu(), which the workers report (ServerEndpoint::client_cpu) ─▶ on_ring() ─▶ pinned
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
  // After so many rings the pinning ends. A busy worker rings so often in some seconds.
  static constexpr uint32_t kStay = 16 * 1024;
  // After so many calls of on_busy() in a row the pinning ends.
  static constexpr uint32_t kSleepless = 16;

  // `cpus`: where the thread may run.
  explicit CpuFollower(std::vector<int> cpus);

  // The thread calls it when a ring has woken it. `cpu`: where all its clients run; -1: unknown, or several CPUs; then
  // the thread may run anywhere. A CPU that is not one of `cpus` counts as -1.
  void on_ring(int cpu);
  // The thread calls it now and then while it does not sleep.
  void on_busy();

 private:
  void move_to(int cpu);

  const std::vector<int> cpus_;
  int taken_ = -1;   // the CPU that the thread is pinned to; -1: not pinned
  int wished_ = -1;  // the CPU from which the last rings came
  uint32_t times_wished_ = 0;
  uint32_t stayed_ = 0;     // rings since the last move
  uint32_t sleepless_ = 0;  // calls of on_busy() since the last ring
};

}  // namespace egret::backend
