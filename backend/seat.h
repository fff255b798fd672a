// Where a partition thread sits when its host has no CPU for it alone: on the one of the worker it serves. There the
// two take turns, in batches as large as what has come in meanwhile; on two CPUs they wake each other for every few
// requests, and each of these wake-ups costs as much as several requests.
//
//   a ring ─▶ SlotPoller::clients_cpu(), as the workers say (ServerEndpoint::client_cpu) ─▶ heard() ─▶ this thread's
//   affinity
//
// The scheduler goes on moving the workers, and the thread follows. Only rings count, since only who sleeps is rung: a
// thread that has no time to sleep needs a CPU of its own. But one that sleeps while it shares a CPU might not if it
// had one to itself, and that cannot be seen from the seat; so now and then the thread gets up, and comes back if it
// goes on hearing rings.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <vector>

namespace egret::backend {

class Seat {
 public:
  // How many rings in a row must come from the same place before the thread moves there.
  static constexpr uint32_t kSure = 64;
  // How many it hears before it gets up; some seconds of a busy worker's.
  static constexpr uint32_t kStay = 16 * 1024;
  // How often in a row it says that it does not sleep before it gets up.
  static constexpr uint32_t kSleepless = 16;

  // `cpus`: where the thread may run.
  explicit Seat(std::vector<int> cpus);

  // To be called by the thread itself when a ring has woken it. `cpu`: where all that it serves comes from; -1:
  // unknown, or from several, so that the thread is to run anywhere. What is none of its CPUs counts as -1.
  void heard(int cpu);
  // Likewise, now and then while the thread has always something to do.
  void does_not_sleep();

 private:
  void move_to(int cpu);

  const std::vector<int> cpus_;
  int taken_ = -1;
  int wished_ = -1;
  uint32_t times_wished_ = 0;
  uint32_t stayed_ = 0;     // rings heard since the last move
  uint32_t sleepless_ = 0;  // times it said so since the last ring
};

}  // namespace egret::backend
