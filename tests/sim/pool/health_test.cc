// What a pool promises of its members' health: who is ejected, and what that means for requests.
#include <doctest/doctest.h>

#include "scenarios_of_pools.h"
#include "seeds.h"

namespace egret::sim {

namespace {

struct Met {
  uint64_t unreachable = 0, slow = 0, returned = 0, withheld = 0, failed_probes = 0, one_way = 0;

  void add(const PoolCounters& one) {
    unreachable += one.ejected_unreachable;
    slow += one.ejected_slow;
    returned += one.returned;
    withheld += one.withheld;
    failed_probes += one.failed_probes;
    one_way += one.cuts_one_way;
  }
};

}  // namespace

TEST_CASE(
    "backends stop, flap, are cut off one-way: after the verdict no request waits, at most the share is ejected, and "
    "everybody returns") {
  Met met;
  for_each_seed(250, [&](uint64_t seed) {
    PoolScenario scenario = any_pool(seed);
    be_impatient(scenario);
    scenario.judges = true;
    scenario.workers = 1 + static_cast<uint32_t>(seed / 2 % 2);
    scenario.health.eject_share = 25 + 25 * static_cast<uint32_t>(seed % 3);
    scenario.steps_to_failure = 200;
    scenario.steps_to_change = seed % 2 == 0 ? 0 : 800;
    PoolWorld world(seed, scenario);
    world.run();
    met.add(world.counters);
    return world.outcome();
  });
  CHECK(is_met(met.unreachable));
  CHECK(is_met(met.slow));
  CHECK(is_met(met.returned));
  CHECK(is_met(met.withheld));
  CHECK(is_met(met.failed_probes));
  CHECK(is_met(met.one_way));
}

}  // namespace egret::sim
