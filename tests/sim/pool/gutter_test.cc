// What a pool promises while others stand in for absent owners. What may be read: history.h, kThroughProxy.
#include <doctest/doctest.h>

#include "scenarios_of_pools.h"
#include "seeds.h"

namespace egret::sim {

namespace {

struct Met {
  uint64_t stood_in = 0, cleared = 0, given_up = 0, purged = 0, flushed = 0, waited = 0, one_way = 0;

  void add(const PoolCounters& one) {
    stood_in += one.stood_in;
    cleared += one.cleared;
    given_up += one.given_up;
    purged += one.purged;
    flushed += one.flushed_owners;
    waited += one.waited;
    one_way += one.cuts_one_way;
  }
};

PoolScenario gutter_pool(uint64_t seed) {
  PoolScenario scenario = any_pool(seed);
  be_impatient(scenario);
  scenario.registers = Registers::kThroughProxy;
  scenario.judges = true;
  scenario.gutter = 1 + static_cast<uint32_t>(seed % 2);
  scenario.health.eject_share = 50 + 25 * static_cast<uint32_t>(seed % 3);
  // Few keys, asked for often, and slow paths: what comes late meets what has changed since.
  scenario.network.stall_percent = seed % 2 == 0 ? 25 : 3;
  scenario.workers = 1 + static_cast<uint32_t>(seed / 2 % 2);
  scenario.connections = scenario.workers == 1 ? 3 : 2;
  scenario.depth = 4 + static_cast<uint32_t>(seed % 5);
  scenario.requests = 80;
  scenario.keys = 3 + 2 * static_cast<uint32_t>(seed % 2);
  scenario.steps_to_failure = 250;
  return scenario;
}

}  // namespace

TEST_CASE(
    "others stand in for owners that stop or cannot be reached, one-way too: through a proxy nothing is read that is "
    "older than what it was acknowledged") {
  Met met;
  for_each_seed(250, [&](uint64_t seed) {
    PoolWorld world(seed, gutter_pool(seed));
    world.run();
    met.add(world.counters);
    return world.outcome();
  });
  CHECK(is_met(met.stood_in));
  CHECK(is_met(met.cleared));
  CHECK(is_met(met.given_up));
  CHECK(is_met(met.purged));
  CHECK(is_met(met.flushed));
  CHECK(is_met(met.waited));
  CHECK(is_met(met.one_way));
}

TEST_CASE(
    "members change, and the gutter does, while others stand in: nothing is read that is older than what was "
    "acknowledged") {
  Met met;
  uint64_t changes = 0, held_back = 0;
  for_each_seed(200, [&](uint64_t seed) {
    PoolScenario scenario = gutter_pool(seed);
    scenario.gutter = 2;
    scenario.gutter_changes = seed % 3 == 0;
    scenario.proxies = 1;
    scenario.workers = 1;
    scenario.tells = true;
    scenario.hurried = true;
    scenario.steps_to_change = 600;
    PoolWorld world(seed, scenario);
    world.run();
    met.add(world.counters);
    changes += world.counters.changes;
    held_back += world.counters.held_back;
    return world.outcome();
  });
  CHECK(is_met(met.stood_in));
  CHECK(is_met(met.cleared));
  CHECK(is_met(changes));
  CHECK(is_met(held_back));
}

TEST_CASE(
    "a proxy never reaches an owner that others reach: some seconds later these read nothing older than what it was "
    "acknowledged") {
  uint64_t stood_in = 0, looked = 0;
  for_each_seed(60, [&](uint64_t seed) {
    PoolScenario scenario = gutter_pool(seed);
    scenario.network.flavour = Flavour::kVerbs;
    scenario.steps_to_failure = 0;
    scenario.requests = 40;
    scenario.looks = true;
    PoolWorld world(seed, scenario);
    world.run();
    stood_in += world.counters.stood_in;
    looked += world.counters.looked;
    return world.outcome();
  });
  CHECK(is_met(stood_in));
  CHECK(is_met(looked));
}

}  // namespace egret::sim
