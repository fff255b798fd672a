#include "bench/duel.h"

#include <utility>

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

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
  std::vector<Turn> turns;
  if (sides.start_subject) turns.push_back({&subject});
  if (!sides.peer_command.empty()) turns.push_back({&peer});
  auto rounds = run_rounds(name, spec, turns, sides.rounds, stop);
  if (!rounds) return rounds.status();
  result.discarded = rounds.value().discarded;
  if (sides.start_subject) result.subject = std::move(rounds.value().turns.front());
  if (!sides.peer_command.empty()) result.peer = std::move(rounds.value().turns.back());
  return result;
}

Ratio ratio_of(const CaseResult& result, Metric metric) {
  return ratio_of(result.subject, result.peer, metric);
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
