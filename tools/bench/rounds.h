// One load, put on several servers in turn, round after round: drift of the machine hits all runs of a round alike, so
// ratios are taken round by round and only then summed up. Each round begins with the next server.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/load.h"
#include "bench/server.h"

namespace egret::bench {

struct RoundsSpec {
  uint32_t rounds = 3;
  double quiet_cpus = 0;  // a round in which others kept more CPUs busy than this is run again; 0: never
};

// A run's place in each round. `server` outlives the rounds.
struct Turn {
  const Server* server = nullptr;
  std::optional<Sending> sending = {};  // in place of the load's own
  uint32_t neighbours = 0;              // processes that spin meanwhile; such a turn is not expected to be quiet
};

struct Rounds {
  std::vector<std::vector<LoadResult>> turns;  // of each turn its rounds, in the order in which they were kept
  uint32_t discarded = 0;                      // rounds that were run again because the machine was not quiet

  uint64_t errors() const;
};

// The first run on each server preloads it if the spec says so. Call it on the main thread (neighbours are forked).
// `stop` ends it early, with what has been measured. The Status is for a run that could not take place.
base::Expected<Rounds> run_rounds(const std::string& label, const LoadSpec& load, const std::vector<Turn>& turns,
                                  const RoundsSpec& spec, const std::atomic<bool>& stop);

using Metric = double LoadResult::*;

double median_of(std::vector<double> values);
double median_of(const std::vector<LoadResult>& rounds, Metric metric);

// Subject's figure over peer's, round by round. All 0 when there is nothing to compare, or to nothing.
struct Ratio {
  double median = 0;
  double min = 0;
  double max = 0;
};
Ratio ratio_of(const std::vector<double>& subject, const std::vector<double>& peer);
Ratio ratio_of(const std::vector<LoadResult>& subject, const std::vector<LoadResult>& peer, Metric metric);

}  // namespace egret::bench
