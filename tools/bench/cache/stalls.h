// The longest stalls of a run. A stall delays many gets; the slowest of them represents it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace egret::bench_cache {

struct Stall {
  uint64_t latency_ns = 0;
  uint64_t due_ns = 0;    // when the get should have been sent
  uint64_t at_items = 0;  // sets that had been answered by then
};

// One thread.
class Stalls {
 public:
  static constexpr size_t kMost = 5;
  // A get that was due at most this long before or after a slower one belongs to that one's stall. The distance counts
  // from the slowest get only; chaining from get to get would make all of them one stall.
  static constexpr uint64_t kReachNs = 500'000'000;

  // Call it in the order in which gets were due.
  void note(const Stall& get) {
    const auto same = std::find_if(longest_.begin(), longest_.end(),
                                   [&](const Stall& each) { return get.due_ns - each.due_ns <= kReachNs; });
    if (same != longest_.end()) {
      if (get.latency_ns <= same->latency_ns) return;
      *same = get;
    } else {
      if (longest_.size() == kMost && get.latency_ns <= longest_.back().latency_ns) return;
      if (longest_.size() == kMost) longest_.pop_back();
      longest_.push_back(get);
    }
    std::sort(longest_.begin(), longest_.end(), [](auto& a, auto& b) { return a.latency_ns > b.latency_ns; });
  }

  const std::vector<Stall>& longest() const { return longest_; }  // the longest first

 private:
  std::vector<Stall> longest_;
};

}  // namespace egret::bench_cache
