#include "bench_cache/growth.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <utility>

#include <sys/prctl.h>

#include "bench/histogram.h"
#include "bench/monotonic.h"
#include "bench/sampler.h"
#include "bench_cache/crew.h"
#include "bench_cache/item_client.h"
#include "bench_cache/stalls.h"

namespace egret::bench_cache {
namespace {

using base::Status;
using bench::Histogram;

constexpr uint32_t kBatch = 100;
constexpr uint32_t kRoomPerItem = 80;  // bytes beyond key and value: memcached's chunk, and 10 % more

void sleep_until(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / bench::kNsPerSecond), static_cast<long>(ns % bench::kNsPerSecond)};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

struct Slice {
  Histogram latency;  // ns, from the moment the get was due
  Histogram
      late;  // ns by which we woke up late with nothing outstanding: the part of latency that the server did not cause
};

// The results of one server. The getter thread owns all except the insertion's counts until it is joined.
struct Grown {
  std::vector<Slice> slices;  // the last one is the overwriting
  Stalls stalls;
  uint64_t misses = 0;
  uint64_t get_wrong = 0;
  std::string first_wrong;
  Status get_status = Status::ok();
  uint64_t stored = 0;
  uint64_t refused = 0;
  double seconds = 0;
};

// Shared by the inserter, which writes it, and the getter.
struct Progress {
  std::atomic<uint64_t> inserted{0};  // answered sets: of keys 0 .. items - 1 in order, then from 0 again
  std::atomic<bool> is_over{false};
};

// Sends one get after another, each due at its time whatever happened to earlier ones: a stall counts for all gets that
// it delays.
Status get_on_schedule(const GrowthOptions& options, ItemClient& client, const Progress& progress, Grown& grown) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  bench::Rng rng(1);
  Answers answers;
  const auto period_ns = static_cast<uint64_t>(static_cast<double>(bench::kNsPerSecond) / options.get_rate);
  for (uint64_t due_ns = bench::monotonic_ns(); !progress.is_over.load(); due_ns += period_ns) {
    const bool is_idle = bench::monotonic_ns() < due_ns;
    if (is_idle) sleep_until(due_ns);
    const uint64_t inserted = progress.inserted.load();
    if (inserted == 0) continue;
    Slice& slice = grown.slices[std::min<uint64_t>(inserted * options.slices / options.items, options.slices)];
    if (is_idle) slice.late.record(bench::monotonic_ns() - due_ns);
    const uint32_t key = rng.below(static_cast<uint32_t>(std::min(inserted, options.items)));
    client.add_get({.key = key, .size = options.value_size, .version = 1});
    if (Status good = client.send(); !good) return good;
    if (Status good = client.receive(answers); !good) return good;
    const uint64_t latency_ns = bench::monotonic_ns() - due_ns;
    slice.latency.record(latency_ns);
    grown.stalls.note({.latency_ns = latency_ns, .due_ns = due_ns, .at_items = inserted});
    grown.misses += answers.missed.size();
    grown.get_wrong += answers.wrong;
    if (grown.first_wrong.empty()) grown.first_wrong = answers.first_wrong;
  }
  return Status::ok();
}

Status insert(const GrowthOptions& options, Crew& crew, const std::atomic<bool>& stop, Progress& progress,
              Grown& grown) {
  const uint64_t start_ns = bench::monotonic_ns();
  const uint64_t sets = options.items + options.items / options.slices;  // the overwriting is as long as a slice
  const auto first_of = [sets](uint64_t batch) { return std::min<uint64_t>(batch * kBatch, sets); };
  const auto compose = [&](uint64_t batch, ItemClient& client) {
    if (options.insert_rate > 0) {
      sleep_until(start_ns + bench::seconds_to_ns(static_cast<double>(first_of(batch)) / options.insert_rate));
    }
    for (uint64_t i = first_of(batch); i < first_of(batch + 1); ++i) {
      client.add_set({.key = static_cast<uint32_t>(i % options.items), .size = options.value_size, .version = 1}, 0);
    }
  };
  const auto judged = [&](uint64_t batch, const Answers& answers) {
    grown.stored += answers.stored;
    grown.refused += answers.refused;
    progress.inserted.store(first_of(batch + 1));
  };
  Status good = crew.run((sets + kBatch - 1) / kBatch, compose, judged, stop);
  grown.seconds = static_cast<double>(bench::monotonic_ns() - start_ns) / bench::kNsPerSecond;
  return good;
}

Status grow(const GrowthOptions& options, const bench::Server& server, const std::atomic<bool>& stop, Grown& grown) {
  grown.slices.resize(options.slices + 1);
  auto crew = Crew::connect(server.address);
  if (!crew) return crew.status();
  auto getter = ItemClient::connect(server.address);
  if (!getter) return getter.status();
  Progress progress;
  std::thread thread([&] { grown.get_status = get_on_schedule(options, getter.value(), progress, grown); });
  Status good = insert(options, crew.value(), stop, progress, grown);
  progress.is_over.store(true);
  thread.join();
  return good ? grown.get_status : good;
}

Cell micros(uint64_t ns) {
  return Cell::number(static_cast<double>(ns) / 1e3, 1);
}

Cell millions(uint64_t items) {
  return Cell::number(static_cast<double>(items) / 1e6, 2);
}

// Latencies while items were inserted.
Histogram growth_latency(const Grown& grown) {
  Histogram all;
  for (size_t i = 0; i + 1 < grown.slices.size(); ++i) all.merge(grown.slices[i].latency);
  return all;
}

Table summary_table() {
  return {.title = "Gets while items are inserted, µs",
          .key = "growth",
          .columns = {{"server", "server"},
                      {"sets, M", "sets_m"},
                      {"refused", "refused"},
                      {"seconds", "seconds"},
                      {"gets", "gets"},
                      {"misses", "misses"},
                      {"p50", "p50_us"},
                      {"p99", "p99_us"},
                      {"p99.9", "p999_us"},
                      {"max", "max_us"}},
          .rows = {}};
}

std::vector<Cell> summary_row(const std::string& name, const Grown& grown) {
  const Histogram all = growth_latency(grown);
  return {name,
          millions(grown.stored),
          grown.refused,
          Cell::number(grown.seconds, 1),
          all.count(),
          grown.misses,
          micros(all.quantile(0.5)),
          micros(all.quantile(0.99)),
          micros(all.quantile(0.999)),
          micros(all.max())};
}

Table slice_table(const std::string& name, const GrowthOptions& options, const Grown& grown) {
  Table table{.title = name + ": by items inserted, µs",
              .key = "slices of " + name,
              .columns = {{"M items up to", "items_m"},
                          {"gets", "gets"},
                          {"p50", "p50_us"},
                          {"p99", "p99_us"},
                          {"p99.9", "p999_us"},
                          {"max", "max_us"},
                          {"own wake-up, p99.9", "late_p999_us"},
                          {"own wake-up, max", "late_max_us"}},
              .rows = {}};
  for (uint32_t i = 0; i <= options.slices; ++i) {
    const Slice& slice = grown.slices[i];
    const bool is_growing = i < options.slices;
    table.rows.push_back({is_growing ? millions(options.items * (i + 1) / options.slices) : Cell("overwriting"),
                          slice.latency.count(), micros(slice.latency.quantile(0.5)),
                          micros(slice.latency.quantile(0.99)), micros(slice.latency.quantile(0.999)),
                          micros(slice.latency.max()), micros(slice.late.quantile(0.999)), micros(slice.late.max())});
  }
  return table;
}

Table stall_table(const std::string& name, const Grown& grown) {
  Table table{.title = name + ": the longest stalls, by their slowest get",
              .key = "stalls of " + name,
              .columns = {{"µs", "us"}, {"at M sets", "sets_m"}},
              .rows = {}};
  for (const Stall& stall : grown.stalls.longest())
    table.rows.push_back({micros(stall.latency_ns), millions(stall.at_items)});
  return table;
}

}  // namespace

uint64_t growth_memory_mib(const GrowthOptions& options) {
  constexpr uint64_t kLeastMib = 64;
  if (options.memory_mib != 0) return options.memory_mib;
  return std::max(kLeastMib, (options.items * (kKeySize + options.value_size + kRoomPerItem) >> 20) + 1);
}

Status measure_growth(const GrowthOptions& options, const std::vector<Contender>& contenders,
                      const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors) {
  tables.push_back(summary_table());
  for (const Contender& contender : contenders) {
    auto server = contender.start();
    if (!server) return server.status();
    Grown grown;
    Status good = grow(options, server.value(), stop, grown);
    errors += grown.get_wrong;
    if (!grown.first_wrong.empty()) std::fprintf(stderr, "%s: %s\n", contender.name.c_str(), grown.first_wrong.c_str());
    if (!good) return Status::error(contender.name + ": " + good.message());
    tables.front().rows.push_back(summary_row(contender.name, grown));
    tables.push_back(slice_table(contender.name, options, grown));
    tables.push_back(stall_table(contender.name, grown));
    if (stop.load()) break;
  }
  return Status::ok();
}

}  // namespace egret::bench_cache
