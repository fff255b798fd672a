// Measures a rule of placement: many keys are placed in a pool and in the pool after a change.
//
//   names, weights ─▶ pool::Placement before and after ─ keys "user:0", "user:1", … ─▶ counts ─▶ Spread, Moved
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "pool/placement.h"

namespace egret::bench_placement {

struct MeasureOptions {
  std::vector<size_t> sizes{3, 5, 10, 11, 24, 25, 64, 100, 300, 1000};
  size_t keys = 1'000'000;
};

// Shares of keys that have another owner after a change.
struct Moved {
  double all = 0;
  double least = 0;  // what the members' weights require
};

// One rule in a pool of equal members.
struct Row {
  pool::PlacementRule rule{};
  size_t members = 0;
  double most = 0;  // keys of the member that has most, divided by the mean
  double fewest = 0;
  Moved added;    // one member more
  Moved removed;  // one member less
  double ns_per_key = 0;
};

// One rule and one change of weights.
struct Change {
  std::string what;
  pool::PlacementRule rule{};
  Moved moved;
};

struct Outcome {
  std::vector<Row> rows;
  std::vector<Change> changes;
};

// Ends early, with fewer rows, when `stop` is set.
Outcome measure(const MeasureOptions& options, const std::atomic<bool>& stop);

}  // namespace egret::bench_placement
