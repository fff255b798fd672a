// What is measured beyond WRITE and READ on a few queue pairs: atomics, SENDs between UD pairs, and all of them on 1 to
// thousands of queue pairs, where a device's memory for them ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench_verbs/point.h"

namespace egret::bench_verbs {

class Runner;

struct BothWays {
  Figures outbound;
  Figures inbound;
};

inline constexpr Kind kAtomics[] = {Kind::kFetchAdd, Kind::kCompareSwap};
struct AtomicsByThreads {
  uint32_t threads = 0;
  BothWays one_by_one[2];  // by kAtomics
  BothWays pipelined[2];
};

// SENDs of kSmall bytes by threads, and by size with the most threads.
struct SendsByThreads {
  uint32_t threads = 0;
  BothWays one_by_one, pipelined;
};
struct SendsBySize {
  uint32_t size = 0;
  BothWays pipelined;
};

inline constexpr Kind kSwept[] = {Kind::kRead, Kind::kWrite, Kind::kFetchAdd, Kind::kCompareSwap, Kind::kSend};
inline constexpr uint32_t kSweptKinds = 5;
inline constexpr uint32_t kSweepDepth = 4;  // verbs under way on each queue pair
struct ByPairs {
  uint32_t pairs = 0;        // of this host, with all others together
  BothWays of[kSweptKinds];  // by kSwept, kSmall bytes; no figures where it says why not
};

struct Further {
  std::vector<AtomicsByThreads> atomics;
  std::string no_atomics;  // why not; else empty
  bool big_endian = false;
  std::vector<SendsByThreads> sends;
  std::vector<SendsBySize> sends_by_size;
  std::string no_sends;
  uint32_t most_send = 0;  // bytes of a datagram
  std::vector<ByPairs> sweep;
  uint32_t sweep_threads = 1;
  std::string no_sweep;        // nothing of it
  std::string no_sweep_sends;  // its SENDs
  std::string sweep_ends;      // why no more pairs
};

const char* name_of(Kind kind);

// Makes the sets of pairs that these take, and measures. What a device does not give is said in `Further`.
void measure_further(Runner& runner, Further& further);

}  // namespace egret::bench_verbs
