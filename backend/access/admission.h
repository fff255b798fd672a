// How many newcomers are let in at once, and when the others should come back. After a backend's restart a thousand proxies
// connect within a moment, and making a session takes the control thread milliseconds: who cannot be served soon is told at
// once when to come again, at the pace at which sessions are made, so that nobody waits in a queue that overflows.
//
//   newcomer ─ few under way ─▶ let in ─▶ accepted(cost) ─▶ granted(cost)        both costs are learned
//            └ many ─▶ a moment of its own: one session's time, and an eighth, after the one before ─▶ come_back_ms
//
// The control thread works for one session at a time, beside it the set-up threads for several: the slower of the two sets
// the pace.
//
// A moment is no reservation: nobody's place is kept, so a peer that takes moments and does not come keeps nobody out. Who
// came back is let in while more are under way than for others. Thread: the control thread. Time is given.
#pragma once

#include <cstddef>
#include <cstdint>

namespace egret::access {

// What a step of one session has taken of the control thread's time, and of the set-up threads' common time: at which interval
// they finish such steps (setup/completions.h). So threads that wait for each other, or for the device, are no faster than one.
struct StepCost {
  uint64_t control_ns = 0;
  uint64_t setup_ns = 0;
};

class Admission {
 public:
  static constexpr size_t kLeastUnderWay = 4;
  static constexpr size_t kMostUnderWay = 12;     // fewer than are accepted in a turn: a turn leaves nobody waiting
  static constexpr uint64_t kSoonNs = 8'000'000;  // what is under way should be done in so long
  static constexpr size_t kMostAccepted = 30;     // the same of newcomers whose connection is made: those are quick
  // For who came back: more than may come at once, since moments lie too close together while it is not known what a session
  // costs; and of those whose connection is made, fewer than newcomers.h lets there be.
  static constexpr size_t kMostWithReturners = 96;
  static constexpr size_t kMostAcceptedWithReturners = 48;
  // Proxies look at their clocks every 20 ms, so those whose moments lie within that come at once: there are no more
  // of them than may be under way.
  static constexpr uint64_t kQuickestPaceNs = 20'000'000 / 24;
  // Before the first moment: turning the others away takes this thread a while.
  static constexpr uint64_t kFirstMomentNs = 60'000'000;
  static constexpr uint32_t kLongestPauseMs = 15'000;

  // What one session has cost: to accept its connection; from then on until it was granted.
  void accepted(const StepCost& cost) { learn(accept_, cost); }
  void granted(const StepCost& cost) { learn(grant_, cost); }

  // `under_way`: connections that were let in and are no sessions yet. `is_accepted`: the newcomer's connection is made. 0: one
  // more is let in; else after how many milliseconds it should come back.
  uint32_t come_back_ms(uint64_t now_ns, size_t under_way, bool came_back, bool is_accepted = false);
  // The time from one session to the next, while as many are made as can be; as far as it is known.
  uint64_t session_ns() const;

 private:
  struct Step {
    StepCost mean;  // moving
    uint64_t seen = 0;
  };
  static void learn(Step& step, const StepCost& cost);
  bool is_known() const { return accept_.seen >= 2 || accept_.mean.setup_ns > 0; }

  Step accept_, grant_;
  uint64_t next_ns_ = 0;  // the moment that was given last
  uint64_t late_ = 0;     // newcomers beyond the longest pause
};

}  // namespace egret::access
