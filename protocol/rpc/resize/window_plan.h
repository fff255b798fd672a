// When a session should have more slots, and when it should give them back.
//
//   small ─ kStalls waits for a slot within kWithinNs, after least_stay_ns ─▶ more ─ granted ─▶ large
//     ▲                          └ refused: the next wish comes later, twice as late each time
//     └──── few messages, and no wait, for idle_ns and up to a quarter more ─ less ◀──────────┘
//
// A load that comes and goes changes the size at most once in idle_ns. Pure: time is the caller's, in ns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::rpc {

// What a session has while little is asked of it.
struct Growth {
  uint32_t window = 0;     // slots per lane; 0: the session has all that it may have at once, and never changes
  uint32_t slot_size = 0;  // bytes, of request and response slots; 0: as large as those of a large session
  uint64_t idle_ns = 0;    // given back after so long with little to do; 0: never
  uint64_t least_stay_ns = 100'000'000;  // after which a small session may ask for more
};

class WindowPlan {
 public:
  enum class Wish : uint8_t { kNone, kMore, kLess };
  static constexpr uint64_t kWithinNs = 1'000'000'000;
  static constexpr uint64_t kStalls = 32;        // within that time: more is needed
  static constexpr uint64_t kFewPerSecond = 50;  // messages; fewer are little to do
  static constexpr uint64_t kMostPatienceNs = 60'000'000'000;

  // The session has a new size. `luck`: any number: sessions that were opened together do not give back together.
  void settle(const Growth& growth, bool is_large, uint64_t now_ns, uint64_t luck) {
    least_stay_ns_ = growth.least_stay_ns;
    patience_ns_ = growth.least_stay_ns;
    idle_ns_ = growth.idle_ns + (growth.idle_ns / 4) * (luck % 1024) / 1024;
    is_large_ = is_large;
    is_new_ = true;
    not_before_ns_ = now_ns + patience_ns_;
    busy_ns_ = began_ns_ = now_ns;
  }
  // The wish was not granted.
  void refuse(uint64_t now_ns) {
    patience_ns_ = std::min(patience_ns_ * 2, std::max(kMostPatienceNs, least_stay_ns_));
    not_before_ns_ = now_ns + patience_ns_;
  }
  // To be asked every few ms while anything is under way, and now and then otherwise. Both counts only grow.
  Wish look(uint64_t now_ns, uint64_t stalls, uint64_t messages) {
    if (is_new_) {
      is_new_ = false;
      stalls_ = stalls;
      messages_ = messages;
    }
    const uint64_t waited = stalls - stalls_;
    const bool is_short = waited >= kStalls;
    if (const uint64_t passed_ns = now_ns - began_ns_; passed_ns >= kWithinNs) {
      if (waited > 0 || (messages - messages_) * 1'000'000'000 >= kFewPerSecond * passed_ns) busy_ns_ = now_ns;
      began_ns_ = now_ns;
      stalls_ = stalls;
      messages_ = messages;
    }
    if (now_ns < not_before_ns_) return Wish::kNone;
    if (!is_large_) return is_short ? Wish::kMore : Wish::kNone;
    return idle_ns_ > 0 && now_ns - busy_ns_ >= idle_ns_ ? Wish::kLess : Wish::kNone;
  }
  bool is_large() const { return is_large_; }

 private:
  bool is_large_ = true;
  bool is_new_ = true;
  uint64_t least_stay_ns_ = 0, patience_ns_ = 0, not_before_ns_ = 0;
  uint64_t idle_ns_ = 0, busy_ns_ = 0;
  uint64_t began_ns_ = 0, stalls_ = 0, messages_ = 0;  // of the span under way
};

}  // namespace egret::rpc
