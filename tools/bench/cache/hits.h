// `egret-bench hits`: replays the same trace to servers with equal memory, and counts the misses of each.
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
  double warmup = 2;            // requests that are not counted, as a multiple of the number of keys
  double requests = 2;          // counted requests, as a multiple of the number of keys
  double ttl_duration_s = 100;  // a mix with expiring items is paced, the same for all servers, to last so long
  double ttl_scale = 0.1;
  std::vector<std::string> mixes;  // names, or parts of names; empty: all
  uint64_t seed = 1;
};

// Measures a row for each mix. `errors` counts wrong answers, and the first ones are printed to stderr; the Status says
// what ended the measurement early.
base::Status measure_hits(const HitsOptions& options, const std::vector<Contender>& contenders,
                          const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors);

}  // namespace egret::bench_cache
