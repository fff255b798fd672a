// run_speed: a StoreBench is filled → probes on it, each beside raw2 → filled up until it evicts → probes of that.
#include "bench_store/speed.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "bench_store/keys.h"
#include "bench_store/machine.h"
#include "bench_store/peer/peer.h"
#include "bench_store/peer/raw_lines.h"
#include "bench_store/store_bench.h"

namespace egret::bench_store {
namespace {

constexpr uint32_t kLargeValue = 1024;

// Sections of one run: a store that holds everything, the same filled up, and a store of larger values.
constexpr std::array<Case, 23> kCases{{
    {"hashing keys", Mix::kHash, 32},
    {"100 % get, batch of 64", Mix::kGet, 64},
    {"100 % get, batch of 32", Mix::kGet, 32},
    {"100 % get, batch of 16", Mix::kGet, 16},
    {"100 % get, batch of 8", Mix::kGet, 8},
    {"100 % get, batch of 4", Mix::kGet, 4},
    {"100 % get, batch of 2", Mix::kGet, 2},
    {"100 % get, batch of 1", Mix::kGet, 1},
    {"100 % get, batch of 32, no prefetch", Mix::kGet, 32, false},
    {"95 % get, batch of 64", Mix::kGet95, 64},
    {"95 % get, batch of 32", Mix::kGet95, 32},
    {"95 % get, batch of 16", Mix::kGet95, 16},
    {"95 % get, batch of 8", Mix::kGet95, 8},
    {"95 % get, batch of 4", Mix::kGet95, 4},
    {"95 % get, batch of 2", Mix::kGet95, 2},
    {"95 % get, batch of 1", Mix::kGet95, 1},
    {"95 % get, batch of 32, no prefetch", Mix::kGet95, 32, false},
    {"100 % get, Zipf 0.99, batch of 32", Mix::kGet, 32, true, true},
    {"100 % get, Zipf 0.99, batch of 32, no prefetch", Mix::kGet, 32, false, true},
    {"set (overwrite), batch of 32", Mix::kSet, 32},
    {"set (overwrite), batch of 32, no prefetch", Mix::kSet, 32, false},
    {"delete and insert, batch of 32", Mix::kReplace, 32},
    {"incr, batch of 32", Mix::kIncrement, 32},
}};
constexpr std::array<Case, 2> kFullCases{{
    {"insert, evicting, batch of 32", Mix::kInsert, 32},
    {"insert, evicting, batch of 32, no prefetch", Mix::kInsert, 32, false},
}};
constexpr std::array<Case, 5> kLargeCases{{
    {"1 KiB: 100 % get, batch of 32", Mix::kGet, 32},
    {"1 KiB: 100 % get, batch of 1", Mix::kGet, 1},
    {"1 KiB: 100 % get, batch of 32, no prefetch", Mix::kGet, 32, false},
    {"1 KiB: 95 % get, batch of 32", Mix::kGet95, 32},
    {"1 KiB: set (overwrite), batch of 32", Mix::kSet, 32},
}};
constexpr std::array<Case, 1> kFullLargeCases{{{"1 KiB: insert, evicting, batch of 32", Mix::kInsert, 32}}};

template <size_t kCount>
void run_cases(StoreBench& bench, const std::array<Case, kCount>& cases, const Probe& control,
               std::vector<Probe> probes, const ProbeOptions& options, Table& table) {
  for (const Case& each : cases) {
    probes.push_back({each.name, [&bench, &each](double seconds) { return bench.measure(each, seconds); }});
  }
  run_probes(std::move(probes), control, options, table);
}

// One store: cases while it holds everything, then cases while it evicts.
template <size_t kRoomy, size_t kFull>
Table run_store(const char* name, StoreBench& bench, const std::array<Case, kRoomy>& roomy,
                const std::array<Case, kFull>& full, const ProbeOptions& options) {
  Table table;
  table.name = name;
  table.notes = bench.notes();
  table.columns = probe_columns("raw2");
  const MemoryMap before = MemoryMap::now();
  const std::unique_ptr<RawLines> raw = bench.make_control();
  table.notes.push_back("raw2: " + (MemoryMap::now() - before).to_string() + ".");
  const auto measure_raw = [&raw](double seconds) { return raw->measure(seconds); };
  const Probe least{"raw2 with keys hashed and compared, values copied",
                    [&bench, &raw](double seconds) { return bench.measure_least(*raw, seconds); }};
  run_cases(bench, roomy, {"raw2, batch of 32", measure_raw}, {least}, options, table);
  bench.fill_up();
  run_cases(bench, full, {"raw2, batch of 32, meanwhile", measure_raw}, {}, options, table);
  return table;
}

}  // namespace

std::vector<Table> run_speed(const SpeedOptions& options, uint64_t& wrong) {
  std::vector<Table> tables;
  const uint64_t memory =
      options.memory_mib != 0 ? options.memory_mib << 20 : memory_for(options.items, options.value_size);
  {
    StoreBench bench(options.items, memory, options.value_size);
    tables.push_back(run_store("speed", bench, kCases, kFullCases, options.probes));
    wrong += bench.wrong();
  }
  if (options.large_values) {
    const uint64_t items = std::max<uint64_t>(memory / (kKeyLength + kLargeValue + 2 * kOverhead), 1);
    StoreBench bench(items, memory_for(items, kLargeValue + kOverhead), kLargeValue);
    tables.push_back(run_store("speed, 1 KiB", bench, kLargeCases, kFullLargeCases, options.probes));
    wrong += bench.wrong();
  }
  if (options.peer_items != 0) {
    const uint64_t items = std::min(options.items, options.peer_items);
    tables.push_back(run_peer(items, options.value_size, options.probes, wrong));
  }
  return tables;
}

}  // namespace egret::bench_store
