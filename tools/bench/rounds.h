// Runs one load on several servers in turn, round after round. A drift of the machine affects all runs of a round
// alike, so ratios are computed per round. Each round begins with the next server.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load.h"
#include "bench/server/server.h"

namespace egret::bench {

struct RoundsSpec {
  uint32_t rounds = 3;
  double quiet_cpus = 0;  // a round in which other processes used more CPUs than this is repeated; 0: never
};

// One run of each round. `server` outlives the rounds.
struct Turn {
  const Server* server = nullptr;
  std::optional<Sending> sending = {};  // replaces the load's own
  uint32_t neighbours = 0;              // number of spinning processes meanwhile; such a turn need not be quiet
};

struct Rounds {
  std::vector<std::vector<LoadResult>> turns;  // indexed by turn, then by round
  uint32_t discarded = 0;                      // rounds that were repeated because the machine was not quiet

  uint64_t errors() const;
};

// The first run on each server preloads it if the spec says so. Call it on the main thread (neighbours are forked).
// `stop` ends it early and returns what was measured. A Status means that a run was not possible.
base::Expected<Rounds> run_rounds(const std::string& label, const LoadSpec& load, const std::vector<Turn>& turns,
                                  const RoundsSpec& spec, const std::atomic<bool>& stop);

using Metric = double LoadResult::*;

double median_of(std::vector<double> values);
double median_of(const std::vector<LoadResult>& rounds, Metric metric);

// The subject's figure divided by the peer's, per round. All 0 if a side is missing, or the peer's figure is 0.
struct Ratio {
  double median = 0;
  double min = 0;
  double max = 0;
};
Ratio ratio_of(const std::vector<double>& subject, const std::vector<double>& peer);
Ratio ratio_of(const std::vector<LoadResult>& subject, const std::vector<LoadResult>& peer, Metric metric);

}  // namespace egret::bench
