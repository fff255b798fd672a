// Runs one load with more and more workers and partitions, and says what an op costs with each number. The load grows with
// them: as many connections and generator threads for each worker.
//
// Thread: the main one, which starts the servers. Errors: a server that cannot be started or run is a Status; wrong answers
// are counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load_spec.h"
#include "bench/server/server.h"
#include "bench_store/table.h"

namespace egret::bench_scale {

struct ScaleOptions {
  bench::EgretFiles egret;
  std::string memcached;         // its command; empty: left out
  std::vector<uint32_t> counts;  // of workers and partitions; empty: 1, 2, 4, … up to half of the CPUs
  bench::LoadSpec load;          // connections and threads: for each worker
  uint32_t rounds = 3;
  uint64_t memory_mib = 1024;
};

struct Scaled {
  bench_store::Table table;
  uint64_t errors = 0;
};

base::Expected<Scaled> measure(const ScaleOptions& options, const std::atomic<bool>& stop);

}  // namespace egret::bench_scale
