// What one run does: how many messages, who sleeps, which step of the protocol is left out; the seeded delays; the
// counts.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace egret::handshakes {

// One step of the protocol that a run can leave out, to show that its loss is noticed. README.md has the table.
enum class Omit : uint8_t {
  kNothing,
  kRecheck,         // partition: after publishing asleep, no second look at the request slot
  kAsleepFence,     // partition: the second look is taken before asleep is visible, as a CPU may do without the fence
  kRearmPoll,       // home: after arming the completion queue, blocks without polling it again
  kRearmSlotsOnly,  // home: after arming, looks at its own slots again but not at the completion queue
  kDrainFirst,      // partition: empties its eventfd after looking at what it announces, not before
  kWantFetch,       // client: sleeps after writing want, without fetching once more
  kWantOrder,       // client: the last fetch goes out before want instead of after it
  kWantFence,       // partition: reads want before the result is visible, as a CPU may do without the fence
  kClientRearm,     // client: after arming its completion queue, blocks without polling it again
  kReplySlots,      // home: all delivers of a lane land in one reply slot instead of one for each slot of the window
  kChecksum,        // both: whatever carries the expected seq is taken
};

enum class ClientMode : uint8_t {
  kFetch,  // never sleeps: fetches until the result is there, and rings (rule a)
  kSleep,  // sleeps at every opportunity (rule b on top of rule a)
  kMix,    // now this, now that
};

struct Scenario {
  uint64_t seed = 1;
  uint32_t messages = 2000;  // per session
  uint32_t sessions = 2;     // session s has its home at partition s mod partitions
  uint32_t partitions = 3;   // = lanes of each session
  uint32_t window = 4;       // slots per lane
  uint32_t wait_ms = 3000;   // a result that takes longer is lost
  uint32_t stop_after = 1;   // lost and wrong results that end the run
  uint32_t max_pause_us = 2000;
  ClientMode mode = ClientMode::kMix;
  Omit omit = Omit::kNothing;
};

// Set-up or fabric trouble: not what this program tests, so it ends at once with status 1.
[[noreturn]] __attribute__((format(printf, 1, 2))) inline void die(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("handshakes: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  _exit(1);
}

inline uint64_t now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_nsec) / 1000;
}

// splitmix64: small, seedable, good enough to choose delays and bytes.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(next() % limit); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

// The delay between any two steps of a role. Half the time none; else the processor is given away, or slept on for up
// to max_pause_us. The same delays are drawn whether a step is left out or not: what is lost, is lost for want of the
// step.
class Pauses {
 public:
  Pauses(const Scenario& scenario, uint64_t role)
      : random_(scenario.seed * 1000 + role), max_us_(scenario.max_pause_us) {}
  void here() {
    const uint32_t kind = random_.below(8);
    if (kind < 4 || max_us_ == 0) return;
    if (kind < 6) {
      sched_yield();
    } else {
      usleep(1 + random_.below(kind == 6 ? 1 + max_us_ / 8 : max_us_));
    }
  }
  // Where what the other side does must not be missed: half the time a long delay.
  void in_window() {
    if (max_us_ > 0 && random_.one_in(2)) usleep(1 + random_.below(max_us_));
  }
  Random& random() { return random_; }

 private:
  Random random_;
  uint32_t max_us_;
};

// Counted by one thread each, added up when they have ended.
struct Counters {
  uint64_t sent = 0, taken_by_fetch = 0, taken_by_last_fetch = 0, taken_by_deliver = 0;  // client
  uint64_t fetches = 0, refetches_not_ready = 0, refetches_torn = 0;                     // client
  uint64_t rings = 0, wants = 0, client_sleeps = 0, late_delivers = 0;                   // client
  uint64_t lost = 0, wrong = 0;                                                          // client
  uint64_t executed = 0, torn_requests = 0, lanes_parked = 0, parks_undone = 0;          // partition
  uint64_t rings_seen = 0, rings_passed_on = 0, rings_in_rearm_window = 0;               // partition, as home
  uint64_t delivers = 0, delivers_for_others = 0, delivers_merged = 0;                   // partition, as home
  uint64_t partition_sleeps = 0;

  void add(const Counters& other) {
    // All members are uint64_t: one table of them would be the third copy of their names.
    auto* to = reinterpret_cast<uint64_t*>(this);
    auto* from = reinterpret_cast<const uint64_t*>(&other);
    for (size_t i = 0; i < sizeof(Counters) / sizeof(uint64_t); ++i) to[i] += from[i];
  }
};

}  // namespace egret::handshakes
