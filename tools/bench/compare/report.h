// The report of a comparison: Markdown for docs/benchmarks/results.md and the README; JSON for programs and for
// `egret-bench plot`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench_compare/contenders.h"
#include "bench_compare/measure.h"

namespace egret::bench_compare {

struct Report {
  Contenders contenders;
  bool is_between_hosts = false;  // the rows are rows_between_hosts()
  std::string congestion;         // is_between_hosts: TCP's congestion control
  bench::RoundsSpec rounds;
  double duration_s = 0;
  std::vector<RowResult> rows;
  std::vector<SweepResult> sweeps;

  uint64_t errors() const;
  // "" if it does not take part.
  std::string version_of(std::string_view contender) const;
  bool has(std::string_view contender) const;
};

// Whether a goal is met, by the median of the rounds.
enum class Verdict : uint8_t {
  kNotMeasured,
  kMissed,
  kMet,  // the target; a later target may still be missed
};
Verdict judge(const Goal& goal, const bench::Ratio& ratio);

// The later target of a goal, as a goal.
Goal later_of(const Goal& goal);

// The way of sending with the worse result, by which a goal is judged. All 0 if neither was measured.
struct Worse {
  bench::Sending sending = bench::Sending::kRounds;
  bench::Ratio ratio;
};
Worse worse_of(const RowResult& result, const Goal& goal);

// How a figure has changed since the base commit. It is a change only if all rounds agree.
enum class Change : uint8_t { kNotMeasured, kWithinSpread, kBetter, kWorse };
Change change_of(const bench::Ratio& ratio, Bound bound);

// Who is compared with the base commit, and with what of it.
struct BesideBase {
  std::string_view subject, base;
};
inline constexpr std::array<BesideBase, 2> kBesideBase{{{kEgret, kBase}, {kOneProcess, kBaseOneProcess}}};

// The figure by which a row is compared with the base commit, and which direction is better.
struct BaseFigure {
  Figure figure;
  Bound bound = Bound::kAtMost;
};
inline constexpr std::array<BaseFigure, 4> kBaseFigures{
    {{kCpu, Bound::kAtMost}, {kThroughput, Bound::kAtLeast}, {kKept, Bound::kAtLeast}, {kMemory, Bound::kAtMost}}};

// The worst change of any of them; kNotMeasured if there is none.
Change change_of(const RowResult& result, const BesideBase& beside, bench::Sending sending);

// Tables: Egret beside the base commit, if that takes part; the ratios next to their goals; the figures.
std::string to_markdown(const Report& report);

// README.md has its form.
std::string to_json(const Report& report);

}  // namespace egret::bench_compare
