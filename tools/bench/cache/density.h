// `egret-bench density`: how many items a server keeps in its memory, and what the memory is used for.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "bench_cache/servers.h"
#include "bench_cache/table.h"

namespace egret::bench_cache {

struct DensityOptions {
  ServerOptions servers;
  uint64_t memory_mib = 64;
  uint32_t value_size = 32;
  double overfill = 1.5;  // items that are stored / those that would fit with kLeanOverhead each
};

// Bytes per item beyond key and value: less than any server needs, so that every server is overfilled.
inline constexpr uint32_t kLeanOverhead = 24;
uint64_t items_to_store(const DensityOptions& options);

// How the limit is used, by Egret's `stats`. The parts do not overlap and add up to the limit; `other` is the rest, and
// negative if the parts exceed the limit.
struct Budget {
  int64_t keys_and_values = 0;
  int64_t item_overhead = 0;  // headers, rounding
  int64_t log_slack = 0;      // pages of log and large values, less the live items in them
  int64_t index = 0;
  int64_t free = 0;
  int64_t other = 0;
};
// `item_bytes`: bytes of key and value of each item.
Budget budget_of(const Stats& stats, uint64_t item_bytes);

base::Status measure_density(const DensityOptions& options, const std::vector<Contender>& contenders,
                             const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors);

}  // namespace egret::bench_cache
