#include "bench_scale/scale.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "bench/rounds.h"

namespace egret::bench_scale {
namespace {

using base::Expected;
using base::Status;
using bench::LoadResult;
using bench::Server;
using bench_store::Cell;
using bench_store::Table;

struct Kind {
  std::string_view name;
  std::function<Expected<Server>(const ScaleOptions&, uint32_t count)> start;
  bool (*takes_part)(const ScaleOptions&);
};

Expected<Server> start_two_daemons(const ScaleOptions& options, uint32_t count) {
  bench::EgretFiles files = options.egret;
  files.proxy_set.push_back("workers=" + std::to_string(count));
  files.backend_set.push_back("partitions=" + std::to_string(count));
  files.backend_set.push_back("memory=" + std::to_string(options.memory_mib) + "MiB");
  return bench::start_egret(files);
}

const std::vector<Kind> kServers{
    {"egret-memcached",
     [](const ScaleOptions& options, uint32_t count) {
       return bench::start_memcached(options.egret.binaries + "/egret-memcached -t " + std::to_string(count),
                                     options.memory_mib);
     },
     [](const ScaleOptions&) { return true; }},
    {"egret-proxy, egret-backend", start_two_daemons, [](const ScaleOptions&) { return true; }},
    {"memcached",
     [](const ScaleOptions& options, uint32_t count) {
       return bench::start_memcached(options.memcached + " -t " + std::to_string(count), options.memory_mib);
     },
     [](const ScaleOptions& options) { return !options.memcached.empty(); }},
};

std::vector<uint32_t> default_counts() {
  std::vector<uint32_t> counts{1};
  const uint32_t most = std::max(2u, std::thread::hardware_concurrency() / 2);
  while (counts.back() * 2 <= most) counts.push_back(counts.back() * 2);
  return counts;
}

// Of one server with so many workers.
struct Point {
  double ops_per_s = 0;
  double cpu_us = 0;
  double switches = 0;
  double p50_us = 0;
  double p99_us = 0;
  double generator_us = 0;
};

Point point_of(const std::vector<LoadResult>& rounds) {
  return {.ops_per_s = median_of(rounds, &LoadResult::ops_per_s),
          .cpu_us = median_of(rounds, &LoadResult::cpu_us_per_op),
          .switches = median_of(rounds, &LoadResult::voluntary_per_op),
          .p50_us = median_of(rounds, &LoadResult::p50_us),
          .p99_us = median_of(rounds, &LoadResult::p99_us),
          .generator_us = median_of(rounds, &LoadResult::generator_us_per_op)};
}

const std::vector<std::string> kColumns{"server",     "workers",     "ops/s",  "ops/s ÷ 1", "CPU us/op",
                                        "CPU/op ÷ 1", "switches/op", "p50 us", "p99 us",    "generator us/op"};

std::vector<Cell> row_of(const Kind& kind, uint32_t count, const Point& point, const Point& first) {
  const auto beside = [](double figure, double of_first) {
    return of_first > 0 ? Cell(figure / of_first, 2) : Cell::none();
  };
  return {Cell(kind.name),          Cell(uint64_t{count}),
          Cell(point.ops_per_s, 0), beside(point.ops_per_s, first.ops_per_s),
          Cell(point.cpu_us, 2),    beside(point.cpu_us, first.cpu_us),
          Cell(point.switches, 3),  Cell(point.p50_us, 0),
          Cell(point.p99_us, 0),    Cell(point.generator_us, 2)};
}

std::string note_of(const ScaleOptions& options) {
  const bench::LoadSpec& load = options.load;
  return std::to_string(load.connections) + " connections and " + std::to_string(load.threads) +
         " generator thread(s) for each worker, depth " + std::to_string(load.depth) + ", values of " +
         std::to_string(load.value_size) + " bytes; " + std::to_string(std::thread::hardware_concurrency()) +
         " CPUs. ÷ 1: beside the same server's first row.";
}

void note_crowding(const ScaleOptions& options, uint32_t most, Table& table) {
  const uint32_t cpus = std::thread::hardware_concurrency();
  if (uint64_t{most} * (1 + options.load.threads) <= cpus) return;
  table.notes.push_back(
      "Workers and generators are more than the CPUs: look at the CPU time and the switches of an op only.");
}

Expected<std::vector<LoadResult>> run_point(const Kind& kind, const ScaleOptions& options, uint32_t count,
                                            const std::atomic<bool>& stop) {
  auto server = kind.start(options, count);
  if (!server) return server.status();
  bench::LoadSpec load = options.load;
  load.connections *= count;
  load.threads *= count;
  const std::string label = std::string(kind.name) + ", " + std::to_string(count);
  auto rounds = bench::run_rounds(label, load, {{&server.value()}}, {.rounds = options.rounds}, stop);
  if (!rounds) return rounds.status();
  return std::move(rounds.value().turns.front());
}

}  // namespace

Expected<Scaled> measure(const ScaleOptions& options, const std::atomic<bool>& stop) {
  const std::vector<uint32_t> counts = options.counts.empty() ? default_counts() : options.counts;
  Scaled scaled;
  scaled.table.name = "scale";
  scaled.table.columns = kColumns;
  scaled.table.notes.push_back(note_of(options));
  note_crowding(options, std::ranges::max(counts), scaled.table);
  for (const Kind& kind : kServers) {
    if (!kind.takes_part(options)) continue;
    Point first;
    for (const uint32_t count : counts) {
      if (stop) return scaled;
      auto rounds = run_point(kind, options, count, stop);
      if (!rounds) return rounds.status();
      for (const LoadResult& round : rounds.value()) scaled.errors += round.total.errors;
      const Point point = point_of(rounds.value());
      if (count == counts.front()) first = point;
      scaled.table.rows.push_back(row_of(kind, count, point, first));
    }
  }
  return scaled;
}

}  // namespace egret::bench_scale
