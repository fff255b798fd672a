#include "bench/compare.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "bench/monotonic.h"
#include "bench/process_meter.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr uint64_t kQuietSampleNs = 200'000'000;
constexpr uint64_t kPatienceNs =
    90 * kNsPerSecond;  // how long a case may spend on waiting for quiet and on rounds in vain

// A round: one run on each side that there is.
struct Round {
  std::vector<LoadResult> subject;
  std::vector<LoadResult> peer;

  double foreign_cpu() const {
    double most = 0;
    for (const auto* side : {&subject, &peer}) {
      for (const LoadResult& each : *side) most = std::max(most, each.foreign_cpu);
    }
    return most;
  }
};

Status run_side(const Server& server, const LoadSpec& spec, const Keyspace& keyspace, const std::string& label,
                const std::atomic<bool>& stop, std::vector<LoadResult>& results) {
  auto result = run_load(spec, keyspace, server.address, server.pids, stop);
  if (!result) return Status::error(server.name + ": " + result.message());
  const LoadResult& figures = result.value();
  std::fprintf(stderr, "%s, %s: %.0f ops/s, p50 %.0f us, p99 %.0f us, CPU %.2f us/op, others %.2f CPUs, %llu errors\n",
               label.c_str(), server.name.c_str(), figures.ops_per_s, figures.p50_us, figures.p99_us,
               figures.cpu_us_per_op, figures.foreign_cpu, static_cast<unsigned long long>(figures.total.errors));
  if (!figures.first_error.empty()) std::fprintf(stderr, "  first error: %s\n", figures.first_error.c_str());
  results.push_back(std::move(result.value()));
  return Status::ok();
}

// Waits until nobody else needs the CPUs. The servers are idle meanwhile.
void wait_for_quiet(double quiet_cpus, uint64_t give_up_ns, const std::atomic<bool>& stop) {
  while (monotonic_ns() < give_up_ns && !stop.load()) {
    const auto before = read_process_cost({});
    const timespec pause{0, kQuietSampleNs};
    ::nanosleep(&pause, nullptr);
    const auto after = read_process_cost({});
    if (!before || !after) return;
    const ProcessCost cost = after.value() - before.value();
    if (static_cast<double>(cost.machine_busy_ns) <= quiet_cpus * static_cast<double>(cost.wall_ns)) return;
  }
}

// What a case is run on. A side that is absent has no address.
struct Arena {
  const Sides& sides;
  const Server& subject;
  const Server& peer;
  const Keyspace& keyspace;
  const std::atomic<bool>& stop;
  const uint64_t impatient_ns;  // from then on any round will do
};

Status run_round(const Arena& arena, const LoadSpec& spec, const std::string& label, Round& round) {
  if (arena.sides.quiet_cpus > 0) wait_for_quiet(arena.sides.quiet_cpus, arena.impatient_ns, arena.stop);
  if (arena.sides.start_subject) {
    Status status = run_side(arena.subject, spec, arena.keyspace, label, arena.stop, round.subject);
    if (!status) return status;
  }
  if (arena.sides.peer_command.empty() || arena.stop.load()) return Status::ok();
  return run_side(arena.peer, spec, arena.keyspace, label, arena.stop, round.peer);
}

// Adds a round to the result, or, if the machine was not quiet and there is patience left, throws it away (but for
// errors: those are kept whatever else went on).
bool keep_round(const Arena& arena, Round& round, CaseResult& result) {
  uint64_t errors = 0;
  for (const auto* side : {&round.subject, &round.peer}) {
    for (const LoadResult& each : *side) errors += each.total.errors;
  }
  const double limit = arena.sides.quiet_cpus;
  if (limit > 0 && round.foreign_cpu() > limit && monotonic_ns() < arena.impatient_ns && errors == 0) {
    std::fprintf(stderr, "  not quiet: this round does not count\n");
    ++result.discarded;
    return false;
  }
  for (LoadResult& each : round.subject) result.subject.push_back(std::move(each));
  for (LoadResult& each : round.peer) result.peer.push_back(std::move(each));
  return true;
}

uint64_t peer_memory_mib(const Sides& sides, const Server& subject) {
  if (sides.peer_memory_mib != 0 || !sides.start_subject) return sides.peer_memory_mib;
  return subject.memory_limit_bytes() >> 20;
}

}  // namespace

uint64_t CaseResult::errors() const {
  uint64_t sum = 0;
  for (const LoadResult& each : subject) sum += each.total.errors;
  for (const LoadResult& each : peer) sum += each.total.errors;
  return sum;
}

Expected<CaseResult> run_case(const std::string& name, const LoadSpec& spec, const Sides& sides,
                              const std::atomic<bool>& stop) {
  CaseResult result;
  result.name = name;
  result.spec = spec;
  const Keyspace keyspace(spec.keys, spec.key_size);
  Server subject;
  Server peer;
  if (sides.start_subject) {
    auto started = sides.start_subject();
    if (!started) return started.status();
    subject = std::move(started.value());
  }
  if (!sides.peer_command.empty()) {
    auto started = start_memcached(sides.peer_command, peer_memory_mib(sides, subject));
    if (!started) return started.status();
    peer = std::move(started.value());
  }
  result.subject_name = subject.name;
  result.peer_name = peer.name == subject.name ? peer.name + " (peer)" : peer.name;
  const Arena arena{sides, subject, peer, keyspace, stop, monotonic_ns() + kPatienceNs};
  LoadSpec each = spec;
  for (uint32_t done = 0; done < sides.rounds && !stop.load();) {
    Round round;
    Status status = run_round(arena, each, name + ", round " + std::to_string(done + 1), round);
    if (!status) return status;
    if (keep_round(arena, round, result)) ++done;
    each.preload = false;  // the keys are there now
    ++each.seed;
  }
  return result;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median_of(const std::vector<LoadResult>& rounds, Metric metric) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const LoadResult& each : rounds) values.push_back(each.*metric);
  return median_of(std::move(values));
}

Ratio ratio_of(const CaseResult& result, Metric metric) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(result.subject.size(), result.peer.size()); ++i) {
    if (result.peer[i].*metric > 0) ratios.push_back(result.subject[i].*metric / (result.peer[i].*metric));
  }
  if (ratios.empty()) return {};
  const auto [min, max] = std::minmax_element(ratios.begin(), ratios.end());
  return {median_of(ratios), *min, *max};
}

std::vector<SuiteCase> suite_cases(const LoadSpec& base) {
  LoadSpec common = base;
  common.connections = 50;
  common.depth = 1;
  common.multiget = 1;
  common.value_size = 100;
  common.keys = 100'000;  // about 20 MB of items in each case, so that the smallest memory in use holds them
  common.rate = 0;
  std::vector<SuiteCase> cases(6, {"", common});
  cases[0].name = "depth 1";
  cases[1].name = "depth 16";
  cases[1].spec.depth = 16;
  cases[2].name = "multiget 50";
  cases[2].spec.multiget = 50;
  cases[2].spec.read_share = 1;  // a set among such gets is one op in 50: what is measured are the gets
  cases[3].name = "1 KiB values";
  cases[3].spec.value_size = 1024;
  cases[3].spec.keys = 20'000;
  cases[4].name = "100 KiB values";
  cases[4].spec.value_size = 100 * 1024;
  cases[4].spec.keys = 200;
  cases[5].name = "20,000 requests/s";
  cases[5].spec.rate = 20'000;
  return cases;
}

}  // namespace egret::bench
