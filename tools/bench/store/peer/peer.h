// The peer of the speed table: a cache in a hash map (map_lru.h).
#pragma once

#include <cstdint>

#include "bench_store/probes.h"
#include "bench_store/table.h"

namespace egret::bench_store {

// `wrong` counts answers that were not the expected ones.
Table run_peer(uint64_t items, uint32_t value_size, const ProbeOptions& options, uint64_t& wrong);

}  // namespace egret::bench_store
