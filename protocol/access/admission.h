// How many newcomers are let in at once, and when the others should come back. After a backend's restart a thousand proxies
// connect within a moment, and making a session takes the control thread milliseconds: who cannot be served soon is told at
// once when to come again, at the pace at which sessions are made, so that nobody waits in a queue that overflows.
//
//   newcomer ─ few under way ─▶ let in ─▶ accepted(cost) ─▶ granted(cost)        both costs are learned
//            └ many ─▶ a moment of its own: one session's cost, and an eighth, after the one before ─▶ come_back_ms
//
// A moment is no reservation: nobody's place is kept, so a peer that takes moments and does not come keeps nobody out. Who
// came back is let in while more are under way than for others. Thread: the control thread. Time is given.
#pragma once

#include <cstddef>
#include <cstdint>

namespace egret::access {

class Admission {
 public:
  static constexpr size_t kLeastUnderWay = 4;
  static constexpr size_t kMostUnderWay = 12;       // fewer than are accepted in a turn: a turn leaves nobody waiting
  static constexpr uint64_t kSoonNs = 8'000'000;    // what is under way should be done in so long
  static constexpr size_t kMostAccepted = 30;       // the same of newcomers whose connection is made: those are quick
  static constexpr size_t kMostWithReturners = 48;  // for who came back; fewer than newcomers.h lets there be
  // Proxies look at their clocks every 20 ms, so those whose moments lie within that come at once: there are no more
  // of them than may be under way.
  static constexpr uint64_t kQuickestPaceNs = 20'000'000 / 24;
  // Before the first moment: turning the others away takes this thread a while.
  static constexpr uint64_t kFirstMomentNs = 60'000'000;
  static constexpr uint32_t kLongestPauseMs = 15'000;

  // What one session has cost this thread: to accept its connection; from then on until it was granted.
  void accepted(uint64_t ns) { learn(accept_, ns); }
  void granted(uint64_t ns) { learn(grant_, ns); }

  // `under_way`: connections that were let in and are no sessions yet. `most`: kMostUnderWay, kMostAccepted. 0: one more
  // is let in; else after how many milliseconds it should come back.
  uint32_t come_back_ms(uint64_t now_ns, size_t under_way, bool came_back, size_t most = kMostUnderWay);
  // Of a whole session, as far as it is known.
  uint64_t cost_ns() const;

 private:
  struct Cost {
    uint64_t mean_ns = 0;  // moving; 0: not known yet
    uint64_t seen = 0;
  };
  static void learn(Cost& cost, uint64_t ns);

  Cost accept_, grant_;
  uint64_t next_ns_ = 0;  // the moment that was given last
  uint64_t late_ = 0;     // newcomers beyond the longest pause
};

}  // namespace egret::access
