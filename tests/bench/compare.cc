#include "bench/compare.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

// Runs one round on one side and tells stderr about it. The keys are loaded in the first round only.
Status run_round(const Server& server, LoadSpec spec, uint32_t round, const Keyspace& keyspace, const std::string& name,
                 const std::atomic<bool>& stop, std::vector<LoadResult>& results) {
  spec.preload = spec.preload && round == 0;
  spec.seed += round;
  auto result = run_load(spec, keyspace, server.address, server.pids, stop);
  if (!result) return Status::error(server.name + ": " + result.message());
  const LoadResult& figures = result.value();
  std::fprintf(
      stderr, "%s, round %u, %s: %.0f ops/s, p50 %.0f us, p99 %.0f us, CPU %.2f us/op, others %.2f CPUs, %llu errors\n",
      name.c_str(), round + 1, server.name.c_str(), figures.ops_per_s, figures.p50_us, figures.p99_us,
      figures.cpu_us_per_op, figures.foreign_cpu, static_cast<unsigned long long>(figures.total.errors));
  if (!figures.first_error.empty()) std::fprintf(stderr, "  first error: %s\n", figures.first_error.c_str());
  results.push_back(std::move(result.value()));
  return Status::ok();
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
  for (uint32_t round = 0; round < sides.rounds && !stop.load(); ++round) {
    if (sides.start_subject) {
      if (Status status = run_round(subject, spec, round, keyspace, name, stop, result.subject); !status) return status;
    }
    if (!sides.peer_command.empty() && !stop.load()) {
      if (Status status = run_round(peer, spec, round, keyspace, name, stop, result.peer); !status) return status;
    }
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
