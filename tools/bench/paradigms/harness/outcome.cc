#include "bench_paradigms/harness/outcome.h"

#include <algorithm>

namespace egret::bench_paradigms {

uint64_t Tally::wrong() const {
  uint64_t sum = 0;
  for (const uint64_t each : faults) sum += each;
  return sum;
}

void Tally::operator+=(const Tally& other) {
  ops += other.ops;
  hits += other.hits;
  misses += other.misses;
  done += other.done;
  full += other.full;
  lost += other.lost;
  failed += other.failed;
  gets += other.gets;
  unanswered += other.unanswered;
  for (size_t i = 0; i < kFaults; ++i) faults[i] += other.faults[i];
  if (first_wrong == Fault::kNone) {
    first_wrong = other.first_wrong;
    first_wrong_key = other.first_wrong_key;
  }
  measured_ops += other.measured_ops;
  latency.merge(other.latency);
}

void RunOutcome::add(const NodeOutcome& node) {
  (node.is_server ? servers : clients) += node.verbs;
  Spent& spent = node.is_server ? server_spent : client_spent;
  spent.cpu += node.spent.cpu;
  spent.busy += node.spent.busy;
  round_ns = std::max(round_ns, node.round_ns);
  tally += node.tally;
  trouble.retries += node.trouble.retries;
  trouble.vain += node.trouble.vain;
  trouble.stuck += node.trouble.stuck;
  trouble.reads += node.trouble.reads;
  walked += node.walked;
}

}  // namespace egret::bench_paradigms
