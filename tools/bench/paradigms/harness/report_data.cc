#include "bench_paradigms/harness/report_data.h"

#include <algorithm>

#include <fmt/format.h>

namespace egret::bench_paradigms {

namespace {

constexpr double kNsPerUs = 1e3;

Class class_of(const Paradigm& paradigm) {
  if (paradigm.has(OpKind::kNext)) return Class::kSequencer;
  return paradigm.has(OpKind::kPut) && paradigm.stores_puts ? Class::kStore : Class::kBound;
}

Row head_of(const Paradigm& paradigm, const Plan& plan) {
  Row row;
  row.id = paradigm.id;
  row.title = paradigm.title;
  row.source = paradigm.source;
  row.rank = class_of(paradigm);
  row.marks = paradigm.marks_of(plan);
  return row;
}

double share(uint64_t ns, uint64_t ops) {
  return ops == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(ops) / kNsPerUs;
}

void add_times(Row& row, const std::vector<RunOutcome>& outcomes) {
  std::vector<double> mops, p50, p99, client_cpu, server_cpu, server_spin;
  for (const RunOutcome& each : outcomes) {
    const uint64_t ops = each.tally.measured_ops;
    if (each.round_ns == 0) continue;
    mops.push_back(static_cast<double>(ops) / static_cast<double>(each.round_ns) * kNsPerUs);
    if (ops == 0) continue;
    p50.push_back(static_cast<double>(each.tally.latency.quantile(0.5)) / kNsPerUs);
    p99.push_back(static_cast<double>(each.tally.latency.quantile(0.99)) / kNsPerUs);
    client_cpu.push_back(share(each.client_spent.cpu, ops));
    server_cpu.push_back(share(each.server_spent.busy, ops));
    server_spin.push_back(share(each.server_spent.cpu, ops));
  }
  row.mops = spread_of(mops);
  row.p50_us = spread_of(p50);
  row.p99_us = spread_of(p99);
  row.client_cpu_us = spread_of(client_cpu);
  row.server_cpu_us = spread_of(server_cpu);
  row.server_spin_us = spread_of(server_spin);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

Row row_not_available(const Paradigm& paradigm, const Plan& plan, std::string why) {
  Row row = head_of(paradigm, plan);
  row.not_available = std::move(why);
  return row;
}

Row row_of(const Paradigm& paradigm, const Plan& plan, const std::vector<RunOutcome>& outcomes) {
  Row row = head_of(paradigm, plan);
  add_times(row, outcomes);
  RunOutcome sum;
  for (const RunOutcome& each : outcomes) {
    sum.tally += each.tally;
    sum.clients += each.clients;
    sum.servers += each.servers;
    sum.walked += each.walked;
    row.trouble += each.trouble;
  }
  const Tally& tally = sum.tally;
  row.ops = tally.ops;
  row.gets = tally.gets;
  row.clients = sum.clients;
  row.servers = sum.servers;
  row.hits = tally.hits;
  row.misses = tally.misses;
  row.done = tally.done;
  row.full = tally.full;
  row.lost = tally.lost;
  row.failed = tally.failed;
  row.unanswered = tally.unanswered;
  row.wrong = tally.wrong();
  row.faults = tally.faults;
  if (row.wrong > 0) row.first_wrong = fmt::format("{}, key {}", name_of(tally.first_wrong), tally.first_wrong_key);
  const Walked& walked = sum.walked;
  const bool are_of_gets = tally.gets == tally.ops || !paradigm.has_puts_that_read(plan);
  if (walked.gets > 0 && are_of_gets) {
    row.expected_steps = static_cast<double>(walked.steps) / static_cast<double>(walked.gets);
  }
  return row;
}

uint8_t kept_marks(const Report& report) {
  unsigned kept = report.device.is_in_order ? kMarkWrite : kNoMark;
  if (report.is_in_memory) kept = 0xff;  // one thread, whole transfers, nothing lost
  return static_cast<uint8_t>(kept & ~report.setting.broken_marks);
}

uint64_t broken_promises(const Report& report) {
  uint64_t sum = 0;
  for (const CaseReport& each : report.cases) {
    for (const Row& row : each.rows) {
      const bool promises = (row.marks & ~kept_marks(report)) == 0;
      if (promises) sum += row.wrong;
    }
  }
  return sum;
}

}  // namespace egret::bench_paradigms
