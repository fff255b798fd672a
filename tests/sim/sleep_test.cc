// No wake-up is lost: a thread that sleeps while it waits for something is woken, without timers. A wake-up is lost
// when nothing happens any more, on the network or in any thread, and an op has no answer.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

struct Seen {
  rpc::LaneCounters client;
  uint64_t sleeps = 0, naps = 0, rings = 0, pushes = 0, told = 0, rings_relayed = 0, deliveries_relayed = 0;

  void add(const World& world) {
    client += world.client_counters();
    for (const auto& one : world.clients) sleeps += one->sleeps();
    naps += world.server_counters().naps;
    rings += world.server_counters().rings;
    pushes += world.server_counters().deliveries;
    told += world.server_counters().told;
    rings_relayed += world.server.rings_relayed;
    deliveries_relayed += world.server.deliveries_relayed;
  }
};

Seen run_seeds(uint64_t seeds, const std::function<Scenario(uint64_t)>& scenario_of) {
  Seen seen;
  for_each_seed(seeds, [&](uint64_t seed) {
    World world(seed, scenario_of(seed));
    world.run();
    seen.add(world);
    return outcome(world);
  });
  return seen;
}

Flavour flavour_of(uint64_t seed) {
  return seed % 4 == 3 ? Flavour::kShm : Flavour::kVerbs;
}

}  // namespace

TEST_CASE("a client that sleeps at every opportunity always wakes") {
  const Seen seen = run_seeds(5000, [](uint64_t seed) {
    Scenario scenario = lonely_scenario(seed);
    scenario.network.flavour = flavour_of(seed);
    scenario.clients_sleep_always = true;
    scenario.lane_idle_ns = 1'000'000'000;  // the server never sleeps
    return scenario;
  });
  CHECK(is_met(seen.sleeps));
  CHECK(is_met(seen.client.replies.get()));
}

TEST_CASE("a partition that sleeps at every opportunity always wakes") {
  const Seen seen = run_seeds(5000, [](uint64_t seed) {
    Scenario scenario = lonely_scenario(seed);
    scenario.network.flavour = flavour_of(seed);
    scenario.park_always = true;
    scenario.session.spin_ns = 50'000;
    return scenario;
  });
  CHECK(is_met(seen.naps));
  CHECK(is_met(seen.rings));
}

TEST_CASE("both sides sleep at every opportunity and always wake") {
  const Seen seen = run_seeds(5000, [](uint64_t seed) {
    Scenario scenario = lonely_scenario(seed);
    scenario.network.flavour = flavour_of(seed);
    scenario.clients_sleep_always = true;
    scenario.park_always = true;
    return scenario;
  });
  CHECK(is_met(seen.sleeps));
  CHECK(is_met(seen.naps));
}

TEST_CASE("a client that fetches nothing hears of it when its lane falls asleep, whatever is on its way meanwhile") {
  const Seen seen = run_seeds(3000, [](uint64_t seed) {
    Scenario scenario = lonely_scenario(seed);
    scenario.network.flavour = Flavour::kVerbs;
    scenario.knows_deliver = true;
    scenario.session.fetch.mode = rpc::FetchMode::kReply;
    scenario.pause_max_ns = 3000;
    scenario.lane_idle_ns = 1000 * (1 + pick(seed, 20));
    return scenario;
  });
  CHECK(is_met(seen.told));
  CHECK(is_met(seen.client.rings.get()));             // what was on its way
  CHECK(is_met(seen.client.ringing_requests.get()));  // what was sent later
  CHECK(seen.client.ringing_requests.get() < seen.client.messages.get());
  CHECK(seen.client.wants.get() + seen.client.fetches.get() == 0);
}

TEST_CASE("rings and pushes find their way through a home to and from other partitions") {
  const Seen seen = run_seeds(1000, [](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.layout.lanes = 2 + pick(seed, 3);
    scenario.clients = 1 + pick(seed, 4);
    scenario.clients_sleep_always = true;
    scenario.park_always = true;
    return scenario;
  });
  CHECK(is_met(seen.rings_relayed));
  CHECK(is_met(seen.deliveries_relayed));
}

TEST_CASE("where each lane has a ring, its partition is woken by it, and no other") {
  const Seen seen = run_seeds(2000, [](uint64_t seed) {
    Scenario scenario = seed % 2 == 0 ? lonely_scenario(seed) : any_scenario(seed);
    scenario.network.flavour = Flavour::kShm;
    scenario.network.lane_rings = true;
    scenario.layout.lanes = 2 + pick(seed, 3);
    scenario.clients_sleep_always = seed % 4 < 2;
    scenario.park_always = true;
    return scenario;
  });
  CHECK(is_met(seen.naps));
  CHECK(is_met(seen.rings));
  CHECK(seen.rings_relayed == 0);
}

TEST_CASE("workers that serve partitions themselves sleep at every opportunity and always wake") {
  const Seen seen = run_seeds(5000, [](uint64_t seed) {
    Scenario scenario = lonely_scenario(seed);
    scenario.is_one_process = true;
    scenario.layout.lanes = 1 + pick(seed, 4);
    scenario.clients = 1 + pick(seed / 4, 3);
    scenario.clients_sleep_always = true;
    scenario.park_always = true;
    return scenario;
  });
  CHECK(is_met(seen.sleeps));
  CHECK(is_met(seen.naps));
  CHECK(is_met(seen.rings_relayed));
}

TEST_CASE("a push that comes before its turn is not waited for a second time") {
  const Seen seen = run_seeds(5000, [](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.clients = 1;
    scenario.layout.lanes = 1;
    scenario.layout.window = 4 + pick(seed, 5);
    scenario.network.read_depth = 16;
    scenario.ops_per_client = 60;
    scenario.burst = 8;
    scenario.session.spin_ns = 0;
    return scenario;
  });
  CHECK(is_met(seen.client.replies.get()));
}

TEST_CASE("a crowd of clients and partitions, asleep and awake, loses nobody") {
  run_seeds(300, [](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = flavour_of(seed);
    scenario.layout.lanes = 4;
    scenario.clients = 6;
    scenario.clients_sleep_always = seed % 2 == 0;
    scenario.lane_idle_ns = 5'000;
    return scenario;
  });
}

}  // namespace egret::sim
