// Every op is executed exactly once, in lane order, and answered exactly once with its own result, whatever the network does.
#include <doctest/doctest.h>

#include "seeds.h"
#include "world.h"

namespace egret::sim {

namespace {

// A shape drawn from the seed; tests then fix what they are about.
Scenario any_scenario(uint64_t seed) {
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
  return scenario;
}

std::string outcome(const World& world) {
  return world.model.has_failed() ? world.model.failure() + "\n  " + world.describe() : "";
}

}  // namespace

TEST_CASE("verbs: every op is executed once, in order, and answered once with its own result") {
  rpc::LaneCounters client;
  rpc::PollerCounters server;
  for_each_seed(300, [&](uint64_t seed) {
    World world(seed, any_scenario(seed));
    world.run();
    client += world.client_counters();
    server.torn += world.server_counters().torn;
    return outcome(world);
  });
  MESSAGE("torn responses " << client.torn << ", torn requests " << server.torn << ", refetches " << client.refetches
                            << ", second reads " << client.second_reads << ", deliveries " << client.deliveries);
  CHECK(client.torn > 0);
  CHECK(server.torn > 0);
  CHECK(client.second_reads > 0);
}

TEST_CASE("shm: every op is executed once, in order, and answered once with its own result") {
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = Flavour::kShm;
    World world(seed, scenario);
    world.run();
    return outcome(world);
  });
}

}  // namespace egret::sim
