// Where a partition thread sits when its host has no CPU for it alone: on the one of the worker it serves. There the
// two take turns, in batches as large as what has come in meanwhile; on two CPUs they wake each other for every few
// requests, and each of these wake-ups costs as much as several requests.
//
//   the workers' CPUs (ServerEndpoint::client_cpu) ─▶ SlotPoller::clients_cpu() ─▶ consider() ─▶ this thread's affinity
//
// The scheduler goes on moving the workers, and the thread follows. Owned and used by one thread.
#pragma once

#include <cstdint>
#include <vector>

namespace egret::backend {

class Seat {
 public:
  // In how many looks in a row the same must be seen before the thread moves.
  static constexpr uint32_t kSure = 8;

  // `cpus`: where the thread may run.
  explicit Seat(std::vector<int> cpus);

  // To be called by the thread itself, now and then while it serves. `cpu`: where all that it serves comes from; -1:
  // unknown, or from several, so that the thread is to run anywhere. What is none of its CPUs counts as -1.
  void consider(int cpu);

 private:
  const std::vector<int> cpus_;
  int taken_ = -1;
  int wished_ = -1;
  uint32_t times_wished_ = 0;
};

}  // namespace egret::backend
