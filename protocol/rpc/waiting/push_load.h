// Whether a partition has time for pushing results, or so many sessions that READs of them are slow: then it tells
// clients that pushing is cheap.
//
// The load is the share of its time in which the partition works on requests, without the posting of results: so it does
// not depend on what clients make of the hint. Pure: no clock of its own. Thread: the partition's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace egret::rpc {

struct PushRules {
  uint32_t below_load = 0;          // percent: with less load pushing is cheap; 0: never for that
  uint32_t above_sessions = 0;      // with more sessions over a network pushing is cheap; 0: never for that
  uint64_t window_ns = 20'000'000;  // the load is that of so long at least
};

class PushLoad {
 public:
  static constexpr uint32_t kHysteresis = 15;  // percent beyond `below_load` until pushing is dear again

  void set_rules(const PushRules& rules) { rules_ = rules; }
  // The first client that is told has come. Until now not all work was counted, so the load is counted anew.
  void begin(uint64_t now_ns) {
    window_began_ns_ = now_ns;
    busy_ns_ = 0;
    is_idle_ = are_many_ = false;
  }
  // A round worked on requests. `sessions`: over a network, now.
  void worked(uint64_t began_ns, uint64_t ended_ns, size_t sessions) {
    busy_ns_ += ended_ns - began_ns;
    if (ended_ns - window_began_ns_ < rules_.window_ns) return;
    const uint64_t load = std::min<uint64_t>(100 * busy_ns_ / (ended_ns - window_began_ns_), 100);
    is_idle_ = load < rules_.below_load + (is_idle_ ? kHysteresis : 0) && rules_.below_load > 0;
    are_many_ = sessions > rules_.above_sessions && rules_.above_sessions > 0;
    window_began_ns_ = ended_ns;
    busy_ns_ = 0;
  }
  bool is_cheap() const { return is_idle_ || are_many_; }

 private:
  PushRules rules_;
  uint64_t window_began_ns_ = 0;
  uint64_t busy_ns_ = 0;  // since then
  bool is_idle_ = false;
  bool are_many_ = false;
};

}  // namespace egret::rpc
