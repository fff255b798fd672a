#include "bench_library/measure.h"

#include <algorithm>
#include <ctime>

#include "bench/monotonic.h"
#include "bench/server/process_meter.h"
#include "bench_library/processes.h"

namespace egret::bench_library {

namespace {

using base::Status;

constexpr size_t kBatches = 1000;       // prepared before a turn, which repeats them
constexpr size_t kLongBatches = 32;     // the same, of pipelined gets
constexpr size_t kWindowsOfBatch = 32;  // a batch of pipelined gets has so many times kUnderWay

size_t keys_of(Kind kind) {
  if (kind == Kind::kMultiget) return kMultigetKeys;
  return kind == Kind::kPipelined ? kUnderWay * kWindowsOfBatch : 1;
}

void sleep_until(uint64_t at_ns) {
  const timespec at{.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000),
                    .tv_nsec = static_cast<long>(at_ns % 1'000'000'000)};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

// The calls of one turn.
class Turn {
 public:
  Turn(Side& side, const MeasureOptions& options, Row& row) : side_(side), options_(options), row_(row) {}

  Status run(const std::atomic<bool>& stop) {
    const bool is_long = row_.kind == Kind::kPipelined;
    const std::vector<Batch> batches = make_batches(is_long ? kLongBatches : kBatches, keys_of(row_.kind),
                                                    options_.keys, options_.value_bytes, row_.gets);
    const auto before = bench::read_process_cost(options_.pids);
    if (!before) return before.status();
    size_t next = 0;
    const uint64_t end_ns = bench::monotonic_ns() + bench::seconds_to_ns(options_.seconds);
    uint64_t now_ns = bench::monotonic_ns();
    while (now_ns < end_ns && !stop.load()) {
      const Batch& batch = batches[next++ % batches.size()];
      if (row_.kind == Kind::kPaced) sleep_until(now_ns / kPaceNs * kPaceNs + kPaceNs);
      const uint64_t begun_ns = bench::monotonic_ns();
      if (Status done = call(batch); !done) return done;
      now_ns = bench::monotonic_ns();
      row_.calls.record((now_ns - begun_ns) / (is_long ? kWindowsOfBatch : 1));
      row_.gets += batch.keys.size();
    }
    const auto after = bench::read_process_cost(options_.pids);
    if (!after) return after.status();
    const bench::ProcessCost cost = after.value() - before.value();
    row_.wall_ns += cost.wall_ns;
    row_.own_cpu_ns += cost.own_cpu_ns;
    row_.server_cpu_ns += cost.cpu_ns;
    return Status::ok();
  }

 private:
  Status call(const Batch& batch) {
    if (batch.keys.size() == 1) return side_.get(batch.keys[0], batch.values[0]);
    return row_.kind == Kind::kMultiget ? side_.multiget(batch.keys, batch.values)
                                        : side_.pipelined(batch.keys, batch.values);
  }

  Side& side_;
  const MeasureOptions& options_;
  Row& row_;
};

}  // namespace

std::vector<Batch> make_batches(size_t batches, size_t keys_each, size_t keys, size_t value_bytes, size_t first) {
  constexpr size_t kStep = 7919;  // a prime: all keys are visited
  std::vector<Batch> made(batches);
  size_t next = first % keys;
  for (Batch& batch : made) {
    for (size_t i = 0; i < keys_each; ++i) {
      batch.keys.push_back(key_of(next));
      batch.values.push_back(value_of(batch.keys.back(), value_bytes));
      next = (next + kStep) % keys;
    }
  }
  return made;
}

Status fill(Side& side, const MeasureOptions& options) {
  for (size_t i = 0; i < options.keys; ++i) {
    const std::string key = key_of(i);
    if (Status stored = side.set(key, value_of(key, options.value_bytes)); !stored) return stored;
  }
  return Status::ok();
}

Status run_turn(Side& side, const MeasureOptions& options, Row& row, const std::atomic<bool>& stop) {
  return row.kind == Kind::kProcesses ? run_processes(side, options, row) : Turn(side, options, row).run(stop);
}

base::Expected<std::vector<std::unique_ptr<Row>>> measure(const std::vector<std::unique_ptr<Side>>& sides,
                                                          const MeasureOptions& options,
                                                          const std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<Row>> rows;
  for (const KindName& name : kKindNames) {
    if (!options.kinds.empty() &&
        std::find(options.kinds.begin(), options.kinds.end(), name.kind) == options.kinds.end())
      continue;
    for (const auto& side : sides) {
      if (name.kind == Kind::kProcesses && !side->may_fork()) continue;
      rows.push_back(std::make_unique<Row>());
      rows.back()->kind = name.kind;
      rows.back()->side = side.get();
    }
  }
  for (const auto& side : sides) {
    if (Status filled = fill(*side, options); !filled) return filled;
  }
  for (size_t round = 0; round < options.rounds && !stop.load(); ++round) {
    for (const auto& row : rows) {
      if (Status done = run_turn(*row->side, options, *row, stop); !done) return done;
    }
  }
  return rows;
}

}  // namespace egret::bench_library
