// What a pool promises while its members stay, change and fail. What may be read: history.h.
#include <doctest/doctest.h>

#include "scenarios_of_pools.h"
#include "seeds.h"

namespace egret::sim {

namespace {

PoolCounters& operator+=(PoolCounters& sum, const PoolCounters& one) {
  sum.changes += one.changes;
  sum.hurried += one.hurried;
  sum.kept_sessions += one.kept_sessions;
  sum.stops += one.stops;
  sum.returns_empty += one.returns_empty;
  sum.returns_with_data += one.returns_with_data;
  sum.cuts += one.cuts;
  sum.cuts_one_way += one.cuts_one_way;
  sum.sessions_lost += one.sessions_lost;
  sum.large_gets += one.large_gets;
  sum.restarted_gets += one.restarted_gets;
  sum.uploads += one.uploads;
  sum.collected += one.collected;
  sum.uploads_moved += one.uploads_moved;
  sum.flushes += one.flushes;
  sum.left_under_way += one.left_under_way;
  return sum;
}

}  // namespace

TEST_CASE("members stay: a read returns the last acknowledged write, through any proxy") {
  PoolCounters met;
  for_each_seed(300, [&](uint64_t seed) {
    PoolScenario scenario = any_pool(seed);
    scenario.registers = Registers::kPerKey;
    PoolWorld world(seed, scenario);
    world.run();
    met += world.counters;
    return world.outcome();
  });
  CHECK(is_met(met.large_gets));
  CHECK(is_met(met.restarted_gets));
  CHECK(is_met(met.uploads));
  CHECK(is_met(met.collected));
  CHECK(is_met(met.flushes));
  CHECK(met.sessions_lost == 0);
}

TEST_CASE("members change: no request fails, and each copy of a key goes on") {
  PoolCounters met;
  for_each_seed(300, [&](uint64_t seed) {
    PoolScenario scenario = any_pool(seed);
    scenario.members_at_first = seed % 2 == 0 ? 1 : 0;
    scenario.workers = 1 + static_cast<uint32_t>(seed % 2);
    scenario.steps_to_change = 500;
    PoolWorld world(seed, scenario);
    world.run();
    met += world.counters;
    return world.outcome();
  });
  CHECK(is_met(met.changes));
  CHECK(is_met(met.kept_sessions));
  CHECK(is_met(met.left_under_way));
  CHECK(is_met(met.uploads_moved));
}

// What telling is for, and that the checker sees it.
TEST_CASE(
    "members change, and nobody is told: an old value is read again, for copies of a key know nothing of one another") {
  uint64_t stale = 0;
  for_each_seed(200, [&](uint64_t seed) {
    PoolScenario scenario = any_pool(seed);
    scenario.registers = Registers::kPerKey;
    scenario.steps_to_change = 500;
    PoolWorld world(seed, scenario);
    world.run();
    stale += world.outcome().find("stale") != std::string::npos;
    return std::string();
  });
  CHECK(is_met(stale));
}

namespace {
PoolScenario telling_pool(uint64_t seed) {
  PoolScenario scenario = any_pool(seed);
  scenario.registers = Registers::kPerKey;
  scenario.proxies = 1;
  scenario.connections = 3;
  scenario.backends = 3;
  scenario.steps_to_change = 400;
  scenario.tells = true;
  return scenario;
}
}  // namespace

TEST_CASE(
    "members change, and backends are told, also those that leave: what moved away is never served when it comes "
    "back") {
  uint64_t changes = 0, uploads_moved = 0;
  for_each_seed(200, [&](uint64_t seed) {
    PoolWorld world(seed, telling_pool(seed));
    world.run();
    changes += world.counters.changes;
    uploads_moved += world.counters.uploads_moved;
    return world.outcome();
  });
  CHECK(is_met(changes));
  CHECK(is_met(uploads_moved));
}

TEST_CASE(
    "members change while backends stop and cannot be reached: who could not be told is held back, and what moved away "
    "is never served when it comes back") {
  uint64_t held_back = 0, let_in = 0, not_told = 0, ejected = 0;
  for_each_seed(600, [&](uint64_t seed) {
    PoolScenario scenario = telling_pool(seed);
    be_impatient(scenario);
    scenario.judges = true;
    scenario.hurried = true;
    scenario.steps_to_failure = 300;
    PoolWorld world(seed, scenario);
    world.run();
    held_back += world.counters.held_back;
    let_in += world.counters.let_in;
    not_told += world.counters.not_told;
    ejected += world.counters.ejected_unreachable;
    return world.outcome();
  });
  CHECK(is_met(held_back));
  CHECK(is_met(let_in));
  CHECK(is_met(ejected));
  CHECK(not_told == 0);
}

TEST_CASE(
    "members change, backends stop and return, paths are cut: each request is answered once, and then all is well") {
  PoolCounters met;
  for_each_seed(300, [&](uint64_t seed) {
    PoolScenario scenario = any_pool(seed);
    be_impatient(scenario);
    scenario.steps_to_change = seed % 3 == 0 ? 0 : 600;
    scenario.steps_to_failure = 300;
    scenario.hurried = seed % 2 == 0;
    scenario.workers = 1 + static_cast<uint32_t>(seed / 2 % 2);
    PoolWorld world(seed, scenario);
    world.run();
    met += world.counters;
    return world.outcome();
  });
  CHECK(is_met(met.hurried));
  CHECK(is_met(met.returns_empty));
  CHECK(is_met(met.returns_with_data));
  CHECK(is_met(met.cuts_one_way));
  CHECK(is_met(met.sessions_lost));
}

}  // namespace egret::sim
