#include "bench_placement/report.h"

#include <string>

namespace egret::bench_placement {
namespace {

using bench_store::Cell;
using bench_store::Table;

Cell percent(double share) {
  return Cell(share * 100, 2);
}

Cell ratio(const Moved& moved) {
  return Cell(moved.all / moved.least, 2);
}

Cell name(pool::PlacementRule rule) {
  return Cell(to_string(rule));
}

}  // namespace

std::vector<Table> tables_of(const MeasureOptions& options, const Outcome& outcome) {
  Table equal;
  equal.name = "equal members";
  equal.notes = {"Members of equal weight, " + std::to_string(options.keys) + " keys."};
  equal.columns = {"members",     "rule",         "most ÷ mean",  "fewest ÷ mean", "+1: moved, %", "+1: least, %",
                   "+1: ÷ least", "-1: moved, %", "-1: least, %", "-1: ÷ least",   "ns per key"};
  for (const Row& row : outcome.rows) {
    equal.rows.push_back({Cell(std::to_string(row.members)), name(row.rule), Cell(row.most, 3), Cell(row.fewest, 3),
                          percent(row.added.all), percent(row.added.least), ratio(row.added), percent(row.removed.all),
                          percent(row.removed.least), ratio(row.removed), Cell(row.ns_per_key, 0)});
  }
  Table weighted;
  weighted.name = "weights";
  weighted.columns = {"change", "rule", "moved, %", "least, %", "÷ least"};
  for (const Change& change : outcome.changes) {
    weighted.rows.push_back({Cell(change.what), name(change.rule), percent(change.moved.all),
                             percent(change.moved.least), ratio(change.moved)});
  }
  return {equal, weighted};
}

}  // namespace egret::bench_placement
