// `egret-bench growth`: one client stores very many new items while another gets some of them on schedule. If the
// server stops to grow its tables, the second client sees the delay. At the end the first client overwrites existing
// items, so that nothing grows: the delays of that phase come from the machine, and are the baseline.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "bench_cache/servers.h"
#include "bench_cache/table.h"

namespace egret::bench_cache {

struct GrowthOptions {
  ServerOptions servers;
  uint64_t items = 50'000'000;
  uint64_t memory_mib = 0;  // 0: kRoomPerItem each, which neither server needs
  uint32_t value_size = 32;
  double insert_rate = 250'000;  // items/s; 0: as fast as answers come
  double get_rate = 2'000;       // gets/s, one at a time
  uint32_t slices = 10;          // parts of the insertion with separate figures
};

uint64_t growth_memory_mib(const GrowthOptions& options);

base::Status measure_growth(const GrowthOptions& options, const std::vector<Contender>& contenders,
                            const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors);

}  // namespace egret::bench_cache
