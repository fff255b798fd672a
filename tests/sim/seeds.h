// Runs a specification over many seeds and says how to replay the one that failed.
//
//   EGRET_SIM_SEED=n    that seed only
//   EGRET_SIM_SEEDS=n   n seeds for each specification (default: what the test says)
//   EGRET_SIM_FIRST=n   beginning with seed n (a soak goes on where the last one ended)
//   EGRET_SIM_SECONDS=s for each specification, seeds until s seconds are over
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace egret::sim {

// `run` returns what went wrong, or "". Reports to doctest and stops at the first seed that fails. A seed that ends the
// process (a failed check, a sanitizer) is named on stderr, too.
void for_each_seed(uint64_t seeds, const std::function<std::string(uint64_t seed)>& run);

// For what a test must have met over all its seeds (a torn response, a ring): one seed alone need not meet it.
bool is_met(uint64_t count);

}  // namespace egret::sim
