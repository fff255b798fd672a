#include "bench_compare/report.h"

#include <algorithm>

namespace egret::bench_compare {
namespace {

const Contender* find(const Report& report, std::string_view name) {
  const auto& present = report.contenders.present;
  const auto found =
      std::find_if(present.begin(), present.end(), [name](const Contender& each) { return each.name == name; });
  return found == present.end() ? nullptr : &*found;
}

}  // namespace

uint64_t Report::errors() const {
  uint64_t sum = 0;
  for (const RowResult& each : rows) sum += each.errors;
  for (const SweepResult& each : sweeps) sum += each.errors();
  return sum;
}

std::string Report::version_of(std::string_view contender) const {
  const Contender* const found = find(*this, contender);
  return found == nullptr ? "" : found->version;
}

bool Report::has(std::string_view contender) const {
  return find(*this, contender) != nullptr;
}

Verdict judge(const Goal& goal, const bench::Ratio& ratio) {
  if (ratio.median == 0) return Verdict::kNotMeasured;
  const bool met = goal.bound == Bound::kAtMost ? ratio.median <= goal.target : ratio.median >= goal.target;
  return met ? Verdict::kMet : Verdict::kMissed;
}

Goal later_of(const Goal& goal) {
  Goal later = goal;
  later.target = goal.later;
  later.later = 0;
  return later;
}

Worse worse_of(const RowResult& result, const Goal& goal) {
  Worse worse;
  for (const bench::Sending sending : result.row.sendings) {
    const bench::Ratio ratio = ratio_between(result, goal.figure, goal.subject, goal.peer, sending);
    if (ratio.median == 0) continue;
    const bool is_worse =
        goal.bound == Bound::kAtMost ? ratio.median > worse.ratio.median : ratio.median < worse.ratio.median;
    if (worse.ratio.median == 0 || is_worse) worse = {sending, ratio};
  }
  return worse;
}

Change change_of(const bench::Ratio& ratio, Bound bound) {
  if (ratio.median == 0) return Change::kNotMeasured;
  if (ratio.min > 1) return bound == Bound::kAtMost ? Change::kWorse : Change::kBetter;
  if (ratio.max < 1) return bound == Bound::kAtMost ? Change::kBetter : Change::kWorse;
  return Change::kWithinSpread;
}

Change change_of(const RowResult& result, const BesideBase& beside, bench::Sending sending) {
  bool is_better = false;
  bool is_measured = false;
  for (const BaseFigure& each : kBaseFigures) {
    const Change change =
        change_of(ratio_between(result, each.figure, beside.subject, beside.base, sending), each.bound);
    if (change == Change::kWorse) return change;
    is_better |= change == Change::kBetter;
    is_measured |= change != Change::kNotMeasured;
  }
  if (!is_measured) return Change::kNotMeasured;
  return is_better ? Change::kBetter : Change::kWithinSpread;
}

}  // namespace egret::bench_compare
