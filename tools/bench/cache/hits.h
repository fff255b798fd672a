// `egret-bench hits`: the same trace, replayed to servers with equal memory, and how often each misses.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench_cache/servers.h"
#include "bench_cache/table.h"
#include "bench_cache/trace.h"

namespace egret::bench_cache {

struct HitsOptions {
  ServerOptions servers;
  uint64_t memory_mib = 64;
  double fraction = 0.1;  // memory / footprint of all keys
  Footprint footprint = Footprint::kChunks;
  double warmup = 2;            // requests before those that count, in multiples of the keys
  double requests = 2;          // that count
  double ttl_duration_s = 100;  // a mix whose items expire is paced, alike for all, to last so long
  double ttl_scale = 0.1;
  std::vector<std::string> mixes;  // names, or parts of names; empty: all
  uint64_t seed = 1;
};

// A row for each mix. `errors` counts wrong answers, of which the first are told on stderr; the Status is of what ended
// it early.
base::Status measure_hits(const HitsOptions& options, const std::vector<Contender>& contenders,
                          const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors);

}  // namespace egret::bench_cache
