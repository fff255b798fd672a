// What a comparison says: Markdown for the README, JSON for machines and for `egret-bench plot`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench_compare/contenders.h"
#include "bench_compare/measure.h"

namespace egret::bench_compare {

struct Report {
  Contenders contenders;
  bench::RoundsSpec rounds;
  double duration_s = 0;
  std::vector<RowResult> rows;
  std::vector<SweepResult> sweeps;

  uint64_t errors() const;
};

// Whether a goal is met, by the median of the rounds.
enum class Verdict : uint8_t {
  kNotMeasured,
  kMissed,
  kMet,  // the target; a goal with a later one too may still miss that
};
Verdict judge(const Goal& goal, const bench::Ratio& ratio);

// Two tables: the ratios next to their goals, and the figures.
std::string to_markdown(const Report& report);

// {"tool", "contenders": [{"name", "version"}], "left_out", "rounds", "duration_s", "cpus", "rows": [...], "sweeps":
// [...], "errors"}; README.md has the rest.
std::string to_json(const Report& report);

}  // namespace egret::bench_compare
