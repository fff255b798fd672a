// `egret-bench growth`: one client stores a great many new items while another gets some of them on schedule. Whoever
// stops to grow is seen by the second. At the end the first goes on to overwrite what is there: nothing grows any more,
// so what the second sees then is what the machine does to it, and the measure for all before.
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
  double get_rate = 2'000;       // gets/s, each on its own
  uint32_t slices = 10;          // parts of the insertion with figures of their own
};

uint64_t growth_memory_mib(const GrowthOptions& options);

base::Status measure_growth(const GrowthOptions& options, const std::vector<Contender>& contenders,
                            const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors);

}  // namespace egret::bench_cache
