// `store-bench`: the CPU time of one op of the store, compared with the least possible on this machine: reading two
// dependent random cache lines ("raw2", raw_lines.h).
#pragma once

#include <cstdint>
#include <vector>

#include "bench_store/probes.h"
#include "bench_store/table.h"

namespace egret::bench_store {

struct SpeedOptions {
  uint64_t items = 12'000'000;
  uint64_t memory_mib = 0;   // 0: what the items need, and about a tenth more
  uint32_t value_size = 32;  // at least 20: values are numbers, padded with spaces, so that each can be counted up
  uint64_t peer_items = 12'000'000;  // at most, of the hash map (about 250 bytes each); 0: no peer
  bool large_values = true;          // a second store of 1 KiB values, as large as the first
  ProbeOptions probes;
};

// One table for each store and one for the peer. `wrong` counts answers that were not the expected ones.
std::vector<Table> run_speed(const SpeedOptions& options, uint64_t& wrong);

}  // namespace egret::bench_store
