#include "bench/load.h"

#include <algorithm>
#include <barrier>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>

#include "bench/client/idle_connections.h"
#include "bench/generator.h"
#include "bench/monotonic.h"
#include "bench/server/process_meter.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr uint64_t kStartDelayNs =
    2'000'000;  // from announcing the window to its start, so that every thread has read it
constexpr uint64_t kMaxBatchBytes = uint64_t{1} << 30;
constexpr uint32_t kMaxKeySize = 250;

void sleep_until(uint64_t ns, const std::atomic<bool>& stop) {
  const timespec time{static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
  while (!stop.load() && monotonic_ns() < ns) ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

struct Costs {
  Expected<ProcessCost> before = Status::error("not measured");
  Expected<ProcessCost> after = Status::error("not measured");
};

// Runs the generators' threads: preload, then one window for all of them, whose ends are measured here.
Costs drive(const LoadSpec& spec, std::vector<std::unique_ptr<Generator>>& generators, const std::vector<pid_t>& pids,
            const std::atomic<bool>& stop) {
  std::barrier<> step(static_cast<std::ptrdiff_t>(generators.size()) + 1);
  LoadWindow window;
  std::vector<std::jthread> threads;
  threads.reserve(generators.size());
  for (auto& each : generators) {
    threads.emplace_back([&spec, &step, &window, generator = each.get()] {
      if (spec.preload) generator->preload();
      step.arrive_and_wait();  // all keys are loaded
      step.arrive_and_wait();  // the window is announced
      generator->run(window);
    });
  }
  step.arrive_and_wait();
  window.start_ns = monotonic_ns() + kStartDelayNs;
  window.measure_from_ns = window.start_ns + seconds_to_ns(spec.warmup_s);
  window.measure_until_ns = window.measure_from_ns + seconds_to_ns(spec.duration_s);
  step.arrive_and_wait();
  Costs costs;
  sleep_until(window.measure_from_ns, stop);
  costs.before = read_process_cost(pids);
  sleep_until(window.measure_until_ns, stop);
  costs.after = read_process_cost(pids);
  return costs;
}

// Divides the rate of costs by the rate of ops, each over its own interval, since this thread may be late at both ends.
void add_costs(const ProcessCost& cost, bool has_pids, LoadResult& result) {
  const double ops = result.ops_per_s * static_cast<double>(cost.wall_ns) / static_cast<double>(kNsPerSecond);
  if (ops <= 0 || cost.wall_ns == 0) return;
  const auto per_op = [ops](uint64_t count) { return static_cast<double>(count) / ops; };
  result.generator_us_per_op = per_op(cost.own_cpu_ns) / 1000;
  const uint64_t known = cost.cpu_ns + cost.own_cpu_ns;
  const uint64_t foreign = cost.machine_busy_ns > known ? cost.machine_busy_ns - known : 0;
  result.foreign_cpu = static_cast<double>(foreign) / static_cast<double>(cost.wall_ns);
  if (!has_pids) return;
  result.cpu_us_per_op = per_op(cost.cpu_ns) / 1000;
  const double by_stat = static_cast<double>(cost.user_ns + cost.system_ns);
  result.cpu_stat_share = cost.cpu_ns == 0 ? 1 : by_stat / static_cast<double>(cost.cpu_ns);
  const double user_share = by_stat == 0 ? 0 : static_cast<double>(cost.user_ns) / by_stat;
  result.user_us_per_op = result.cpu_us_per_op * user_share;
  result.system_us_per_op = result.cpu_us_per_op - result.user_us_per_op;
  result.voluntary_per_op = per_op(cost.voluntary);
  result.involuntary_per_op = per_op(cost.involuntary);
}

LoadResult summarise(const std::vector<std::unique_ptr<Generator>>& generators) {
  Tally all;
  LoadResult result;
  for (const auto& each : generators) {
    all.merge(each->tally());
    result.measured += each->measured();
    if (each->measured_seconds() <= 0) continue;
    result.ops_per_s += static_cast<double>(each->measured().ops()) / each->measured_seconds();
    result.requests_per_s += static_cast<double>(each->measured().requests) / each->measured_seconds();
  }
  const auto us = [&all](double share) { return static_cast<double>(all.latency.quantile(share)) / 1000; };
  result.p50_us = us(0.5);
  result.p99_us = us(0.99);
  result.p999_us = us(0.999);
  result.max_us = static_cast<double>(all.latency.max()) / 1000;
  result.total = all.counters;
  result.first_error = all.first_error;
  return result;
}

}  // namespace

Status check_spec(const LoadSpec& spec) {
  if (spec.connections == 0 || spec.depth == 0 || spec.multiget == 0 || spec.keys == 0 || spec.threads == 0) {
    return Status::error("connections, depth, multiget, keys and threads must be at least 1");
  }
  if (spec.threads > spec.connections) return Status::error("more threads than connections");
  if (spec.key_size > kMaxKeySize || spec.key_size < Keyspace::min_key_size(spec.keys)) {
    return Status::error("key size: " + std::to_string(spec.keys) + " keys need " +
                         std::to_string(Keyspace::min_key_size(spec.keys)) + " to 250 bytes");
  }
  if (!(spec.read_share >= 0 && spec.read_share <= 1)) return Status::error("the read share is 0 to 1");
  if (!(spec.zipf >= 0) || !(spec.rate >= 0)) return Status::error("zipf and rate must not be negative");
  if (!(spec.duration_s > 0) || !(spec.warmup_s >= 0)) return Status::error("the duration must be above 0");
  const uint64_t batch =
      spec.depth * std::max<uint64_t>(spec.value_size, uint64_t{spec.multiget} * (spec.key_size + 1));
  if (batch > kMaxBatchBytes) return Status::error("depth times value size is more than 1 GiB for each connection");
  return Status::ok();
}

Expected<LoadResult> run_load(const LoadSpec& spec, const Keyspace& keyspace, const Address& address,
                              const std::vector<pid_t>& pids, const std::atomic<bool>& stop) {
  const auto idle = IdleConnections::open(address, spec.idle_connections);
  if (!idle) return idle.status();
  std::vector<std::unique_ptr<Generator>> generators;
  for (uint32_t thread = 0; thread < spec.threads; ++thread) {
    generators.push_back(std::make_unique<Generator>(spec, keyspace, thread, stop));
    if (Status status = generators.back()->connect(address); !status) return status;
  }
  const Costs costs = drive(spec, generators, pids, stop);
  if (!costs.before) return costs.before.status();
  if (!costs.after) return costs.after.status();
  LoadResult result = summarise(generators);
  add_costs(costs.after.value() - costs.before.value(), !pids.empty(), result);
  if (const Status status = idle.value().check(); !status) {
    ++result.total.errors;
    if (result.first_error.empty()) result.first_error = status.message();
  }
  return result;
}

}  // namespace egret::bench
