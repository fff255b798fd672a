// `store-bench --model`: miss ratios of the class Store, read-through (a miss is followed by a set), on the traces by
// which the design was chosen; beside them the figures of that time, and an ideal memcached on the same trace.
#pragma once

#include <cstdint>
#include <string>

#include "bench_store/table.h"

namespace egret::bench_store {

struct ModelOptions {
  uint32_t keys = 2'000'000;    // of a row whose memory is 10 % of its footprint or more; five times as many below
  double requests_per_key = 6;  // the first half warms the cache up and is not counted
  double requests_per_second = 10'000;  // of the clock that expiry goes by
  uint32_t ops_per_pass = 16;           // begin_pass() is called once for so many ops
  std::string only;                     // rows whose name contains this
  uint64_t seed = 1;
};

// Replays every row and reports its progress on stderr. `wrong` counts answers that differ from what was stored; they
// invalidate the figures.
Table run_model(const ModelOptions& options, uint64_t& wrong);

}  // namespace egret::bench_store
