// The event loops, and the random numbers, that production code of a control thread gets in a simulation: this takes the
// place of protocol/events/event.cc and base/random.cc when a test is linked.
//
//   Event::add(), a descriptor that becomes ready ─▶ EventLoop::run_once(false): handlers, in an order drawn from the seed
//
// Nothing waits: time is the world's, kPace times as fast, since production code counts in milliseconds what takes
// microseconds here. Descriptors are those of Network, and eventfds. Single-threaded.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "events/event.h"
#include "network.h"
#include "rng.h"
#include "sim_clock.h"

namespace egret::sim {

// The clock of control threads: so many of its nanoseconds are one of the world's.
class ControlClock final : public base::Clock {
 public:
  static constexpr uint64_t kPace = 5'000;

  explicit ControlClock(const SimClock& world) : world_(world) {}
  uint64_t now_ns() const override { return world_.now_ns() * kPace; }
  int64_t unix_seconds() const override { return world_.unix_seconds(); }
  // Without letting others in.
  uint64_t quiet_now_ns() const { return world_.manual.now_ns() * kPace; }

 private:
  const SimClock& world_;
};

// What event loops run on, from now on. All outlive the loops.
void bind_events(const ControlClock& clock, Network& network, Rng& rng);

// Whether run_once() would call a handler.
bool is_ready(const events::EventLoop& loop);
// When its first timer is due, by the world's clock; UINT64_MAX: it has none.
uint64_t next_timer_ns(const events::EventLoop& loop);

}  // namespace egret::sim
