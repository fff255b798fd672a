// Scenarios that the specifications share.
#pragma once

#include <array>
#include <string>

#include "world.h"

namespace egret::sim {

inline uint32_t pick(uint64_t seed, uint32_t choices) {
  return static_cast<uint32_t>(seed % choices);
}

// Sizes, delays and read depth drawn from the seed; a test then fixes what it is about.
inline Scenario any_scenario(uint64_t seed) {
  Rng rng(seed ^ 0xABCDEF);
  Scenario scenario;
  scenario.network.read_depth = rng.percent(30) ? 1 : 16;
  scenario.network.overtake = rng.percent(70);
  scenario.network.stall_percent = rng.below(10);
  scenario.layout.lanes = rng.between(1, 4);
  scenario.layout.window = rng.between(2, 8);
  scenario.layout.request_slot_size = 1024 + 512 * rng.below(4);
  scenario.layout.response_slot_size = 1024 + 512 * rng.below(4);
  scenario.clients = rng.between(1, 3);
  scenario.burst = rng.between(1, 20);
  scenario.pause_max_ns = rng.percent(30) ? 3000 : 0;
  scenario.knows_deliver = rng.percent(75);
  scenario.network.lane_rings = seed / 4 % 2 == 0;  // where they are over shared memory
  // Pushing is never cheap, always, or now and then.
  scenario.push = {.below_load = std::array{0u, 100u, rng.between(1, 80)}[rng.below(3)], .window_ns = 20'000};
  return scenario;
}

// Few actors and one op at a time, so that no other traffic wakes by luck whoever should have been woken.
inline Scenario lonely_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.clients = 1;
  scenario.layout.lanes = 1 + pick(seed, 2);
  scenario.burst = 1 + pick(seed, 3);
  scenario.ops_per_client = 30;
  return scenario;
}

inline std::string outcome(const World& world) {
  return world.model.has_failed() ? world.model.failure() + "\n  " + world.describe() : "";
}

}  // namespace egret::sim
