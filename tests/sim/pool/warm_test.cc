// What a pool promises while the values of keys that moved are brought to their owners. What may be read: history.h.
#include <doctest/doctest.h>

#include "scenarios_of_pools.h"
#include "seeds.h"

namespace egret::sim {

namespace {

struct Met {
  uint64_t changes = 0, pulled = 0, filled = 0, refused = 0, asked_again = 0;

  void add(const PoolCounters& one) {
    changes += one.changes;
    pulled += one.pulled;
    filled += one.filled;
    refused += one.fills_refused;
    asked_again += one.asked_again;
  }
  void check() const {
    CHECK(is_met(changes));
    CHECK(is_met(pulled));
    CHECK(is_met(filled));
    CHECK(is_met(refused));
    CHECK(is_met(asked_again));
  }
};

PoolScenario warm_pool(uint64_t seed) {
  PoolScenario scenario = any_pool(seed);
  scenario.connections = 3;
  scenario.steps_to_change = 400;
  scenario.warm_ns = seed % 3 == 0 ? 20'000 : 300'000;
  return scenario;
}

}  // namespace

TEST_CASE("members change again and again, and values move with their keys: a read returns nothing that was replaced") {
  Met met;
  for_each_seed(250, [&](uint64_t seed) {
    PoolScenario scenario = warm_pool(seed);
    scenario.registers = Registers::kPerKey;
    scenario.proxies = 1;
    scenario.tells = true;
    PoolWorld world(seed, scenario);
    world.run();
    for (const auto& proxy : world.proxies) proxy->stop();
    met.add(world.counters);
    return world.outcome();
  });
  met.check();
}

TEST_CASE(
    "workers of a proxy learn of a change one after the other: values are brought when nobody changes them any more "
    "where "
    "they were") {
  Met met;
  for_each_seed(200, [&](uint64_t seed) {
    PoolScenario scenario = warm_pool(seed);
    scenario.registers = Registers::kPerOrigin;
    scenario.proxies = 1;
    scenario.workers = 2;
    scenario.connections = 2;
    scenario.keys = 4;
    scenario.most_changes = 2;
    scenario.tells = true;
    PoolWorld world(seed, scenario);
    world.run();
    for (const auto& proxy : world.proxies) proxy->stop();
    met.add(world.counters);
    return world.outcome();
  });
  met.check();
}

TEST_CASE(
    "proxies learn of a change one after the other: what was changed at the present owner stays, whatever is filled") {
  Met met;
  for_each_seed(300, [&](uint64_t seed) {
    PoolScenario scenario = warm_pool(seed);
    scenario.registers = Registers::kPerFilledCopy;
    scenario.members_at_first = 1 + static_cast<uint32_t>(seed % 2);
    scenario.most_changes = 1;
    scenario.keys = 4;
    scenario.requests = 60;
    PoolWorld world(seed, scenario);
    world.run();
    for (const auto& proxy : world.proxies) proxy->stop();
    met.add(world.counters);
    return world.outcome();
  });
  met.check();
}

}  // namespace egret::sim
