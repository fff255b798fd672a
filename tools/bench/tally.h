// The results of one thread's requests: counts, latencies, and the first error.
// Owned by one thread; merged after it has ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/histogram.h"

namespace egret::bench {

// An op is one key: each key of a multiget, each set.
struct Counters {
  uint64_t requests = 0;  // answered in any way
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t stored = 0;
  uint64_t errors = 0;      // error answers, mismatches, lost connections, requests without an answer
  uint64_t asked_keys = 0;  // sent: keys of gets
  uint64_t asked_sets = 0;  // sent

  uint64_t ops() const { return hits + misses + stored; }

  Counters& operator+=(const Counters& other);
  Counters operator-(const Counters& before) const;
};

class Tally {
 public:
  // Records latencies of requests whose reference time is in [from, until): the time of the answer in a closed loop,
  // the intended time of sending for paced requests (so that a stall counts for every request that it delays).
  void set_window(uint64_t from_ns, uint64_t until_ns, bool by_intended_time);

  void answered(uint64_t intended_ns, uint64_t now_ns);
  void failed(std::string_view what);
  void merge(const Tally& other);

  Counters counters;
  Histogram latency;        // ns, per request
  std::string first_error;  // empty: none

 private:
  uint64_t from_ns_ = 0;
  uint64_t until_ns_ = 0;
  bool by_intended_time_ = false;
};

}  // namespace egret::bench
