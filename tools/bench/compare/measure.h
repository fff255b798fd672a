// Measures a row or a sweep: starts its servers anew, runs its rounds, ends its servers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/rounds.h"
#include "bench_compare/contenders.h"
#include "bench_compare/rows.h"

namespace egret::bench_compare {

using Figures = std::map<std::string_view, double>;  // by Figure::key

// One contender's rounds in one row, in one way of sending.
struct Series {
  std::string contender;
  bench::Sending sending = bench::Sending::kRounds;
  std::vector<Figures> rounds;

  std::vector<double> values(Figure figure) const;  // of the rounds that have it
  double median(Figure figure) const;               // 0 if none has it
};

struct RowResult {
  Row row;
  std::vector<Series> series;
  uint32_t discarded = 0;
  uint64_t errors = 0;
  std::string first_error;

  // Null if it did not take part.
  const Series* find(std::string_view contender, bench::Sending sending) const;
};

// One contender's figure divided by another's, per round; without a peer, the figure itself. All 0 if it was not measured.
bench::Ratio ratio_between(const RowResult& result, Figure figure, std::string_view subject, std::string_view peer,
                           bench::Sending sending);
// The same of Egret.
bench::Ratio ratio_of(const RowResult& result, Figure figure, std::string_view peer, bench::Sending sending);

// Main thread only. The Status is for a row that could not be measured; wrong answers are in .errors.
base::Expected<RowResult> measure_row(const Row& row, const std::vector<Contender>& contenders,
                                      const bench::RoundsSpec& rounds, const std::atomic<bool>& stop);

struct SweepPoint {
  uint32_t connections = 0;
  RowResult result;
};
struct SweepResult {
  Sweep sweep;
  std::vector<SweepPoint> points;

  uint64_t errors() const;
};
base::Expected<SweepResult> measure_sweep(const Sweep& sweep, const std::vector<Contender>& contenders,
                                          const bench::RoundsSpec& rounds, const std::atomic<bool>& stop);

}  // namespace egret::bench_compare
