// `store-bench --steps`: the wall time of every call of a full store: how long one op, one part of a large value or one
// pass of upkeep delays the partition's other clients.
#pragma once

#include <cstdint>

#include "bench_store/table.h"

namespace egret::bench_store {

struct StepsOptions {
  uint64_t memory_mib = 256;
  double seconds = 10;  // of wall time, after the store is full
  uint64_t seed = 1;
};

// `wrong` counts answers that were not the expected ones, and a store that does not pass its checker afterwards.
Table run_steps(const StepsOptions& options, uint64_t& wrong);

}  // namespace egret::bench_store
