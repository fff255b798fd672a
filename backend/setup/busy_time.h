// How long a piece of work took, and how many threads were at work meanwhile, on average: what tells by how much they hold
// each other up. Time is given, and does not go back. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace egret::backend {

class BusyTime {
 public:
  struct Work {
    uint64_t begun_ns = 0;
    uint64_t all_ns = 0;  // of all threads until then
  };
  struct Spent {
    uint64_t took_ns = 0;  // at least 1
    size_t at_once = 1;    // threads at work, this one included; rounded
  };

  Work begin(uint64_t now_ns) {
    advance(now_ns);
    ++busy_;
    return {now_ns, all_ns_};
  }
  Spent end(const Work& work, uint64_t now_ns) {
    now_ns = std::max(now_ns, work.begun_ns + 1);
    advance(now_ns);
    --busy_;
    const uint64_t took_ns = now_ns - work.begun_ns;
    const uint64_t at_once = (all_ns_ - work.all_ns + took_ns / 2) / took_ns;
    return {took_ns, std::max<size_t>(at_once, 1)};
  }

 private:
  void advance(uint64_t now_ns) {
    all_ns_ += busy_ * (now_ns - std::min(now_ns, until_ns_));
    until_ns_ = std::max(now_ns, until_ns_);
  }

  size_t busy_ = 0;       // threads at work
  uint64_t all_ns_ = 0;   // their time at work together,
  uint64_t until_ns_ = 0; // until then
};

}  // namespace egret::backend
