#include "bench_paradigms/harness/outcome.h"

#include <algorithm>

#include "bench/sampler.h"

namespace egret::bench_paradigms {

void Numbers::take(uint64_t number) {
  ++count;
  least = std::min(least, number);
  most = std::max(most, number);
  digest += bench::mix64(number);
}

void Numbers::operator+=(const Numbers& other) {
  count += other.count;
  least = std::min(least, other.least);
  most = std::max(most, other.most);
  digest += other.digest;
}

bool Numbers::are_each_once() const {
  if (count == 0) return true;
  if (count - 1 != most - least) return false;
  uint64_t expected = 0;
  for (uint64_t i = 0; i < count; ++i) expected += bench::mix64(least + i);
  return digest == expected;
}

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
  numbers += other.numbers;
  for (size_t i = 0; i < kFaults; ++i) faults[i] += other.faults[i];
  if (first_wrong == Fault::kNone) {
    first_wrong = other.first_wrong;
    first_wrong_key = other.first_wrong_key;
  }
  measured_ops += other.measured_ops;
  latency.merge(other.latency);
}

void RunOutcome::judge_numbers() {
  uint64_t& duplicates = tally.faults[static_cast<size_t>(Fault::kDuplicate)];
  if (duplicates > 0) return;  // found by one host alone
  const bool may_leave_out = tally.lost + tally.failed + tally.unanswered + trouble.retries > 0;
  const bool is_wrong = may_leave_out ? tally.numbers.are_too_many() : !tally.numbers.are_each_once();
  if (!is_wrong) return;
  duplicates = 1;
  if (tally.first_wrong == Fault::kNone) tally.first_wrong = Fault::kDuplicate;
}

void RunOutcome::add(const NodeOutcome& node) {
  (node.is_server ? servers : clients) += node.verbs;
  Spent& spent = node.is_server ? server_spent : client_spent;
  spent.cpu += node.spent.cpu;
  spent.busy += node.spent.busy;
  round_ns = std::max(round_ns, node.round_ns);
  tally += node.tally;
  trouble += node.trouble;
  walked += node.walked;
}

}  // namespace egret::bench_paradigms
