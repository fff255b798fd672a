// Scenarios that the specifications of pools share.
#pragma once

#include "pool_world.h"

namespace egret::sim {

// Sizes, delays and transport drawn from the seed; a test then fixes what it is about.
inline PoolScenario any_pool(uint64_t seed) {
  Rng rng(seed ^ 0xABCDEF);
  PoolScenario scenario;
  scenario.network.flavour = rng.percent(70) ? Flavour::kVerbs : Flavour::kShm;
  scenario.network.read_depth = rng.percent(30) ? 1 : 16;
  scenario.network.stall_percent = rng.below(6);
  scenario.backends = rng.between(2, 4);
  scenario.proxies = rng.between(2, 3);
  scenario.connections = rng.between(1, 3);
  scenario.depth = rng.between(1, 8);
  scenario.keys = rng.between(5, 12);
  scenario.rule = rng.percent(50) ? pool::PlacementRule::kKetama : pool::PlacementRule::kRendezvous;
  scenario.layout.lanes = rng.between(1, 2);
  scenario.layout.window = rng.between(2, 6);
  return scenario;
}

// Times small enough that a run meets their end.
inline void be_impatient(PoolScenario& scenario) {
  scenario.session.op_timeout_ns = 300'000;
  scenario.session.connect_timeout_ns = 200'000;
  scenario.session.backoff_min_ns = 5'000;
  scenario.session.backoff_max_ns = 50'000;
}

}  // namespace egret::sim
