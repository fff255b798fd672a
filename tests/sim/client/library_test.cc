// Programs that link libegret, among proxies: every op of theirs is executed once, in its lane's order, and answered once with its
// own result; they sleep and are woken; nobody is slowed by one that stops.
#include <algorithm>

#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"
#include "sim_library.h"
#include "sim_relay.h"

using namespace egret;
using namespace egret::sim;

namespace {

constexpr uint32_t kRoomForOne = 21'000;  // item_size_max: a lane has room for one of the longest values at a time

// Adds one to `most` programs to the scenario's proxy workers. Returns the first.
SimLibrary& add_libraries(World& world, LibraryOptions options = {}, uint32_t most = 3) {
  Rng rng(world.seed ^ 0x11B);
  for (uint32_t i = 0, count = rng.between(1, most); i < count; ++i) {
    world.others.push_back(std::make_unique<SimLibrary>(world, i, options));
  }
  return static_cast<SimLibrary&>(*world.others.front());
}

Scenario shared_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.network.flavour = seed % 2 == 0 ? Flavour::kShm : Flavour::kVerbs;
  return scenario;
}

// With sets whose values go in parts.
Scenario scenario_of_long_sets(uint64_t seed) {
  Scenario scenario = shared_scenario(seed);
  scenario.model.long_percent = 30;
  if (seed % 2 == 1) scenario.item_size_max = kRoomForOne;
  return scenario;
}

// What is left of values in parts when every op has been answered, and partitions have heard which sessions are over: nothing.
std::string outcome_of_long_sets(World& world) {
  const auto is_nothing_left = [&] { return world.model.uploads().open() == 0; };
  if (world.model.has_failed() || is_nothing_left() || world.run_until(is_nothing_left)) return outcome(world);
  return "parts of " + std::to_string(world.model.uploads().open()) + " values are left\n  " + world.describe();
}

uint64_t sleeps_of(const World& world) {
  uint64_t sum = 0;
  for (const auto& each : world.others) sum += static_cast<const SimLibrary&>(*each).sleeps();
  return sum;
}

}  // namespace

TEST_CASE("libraries among proxies: every op is executed once, in order, and answered once with its own result") {
  uint64_t sleeps = 0;
  for_each_seed(100, [&](uint64_t seed) {
    World world(seed, shared_scenario(seed));
    add_libraries(world);
    world.run();
    sleeps += sleeps_of(world);
    return outcome(world);
  });
  CHECK(is_met(sleeps));
}

TEST_CASE("a library and partitions that sleep at every opportunity wake each other") {
  uint64_t rings = 0, sleeps = 0;
  for_each_seed(150, [&](uint64_t seed) {
    Scenario scenario = lonely_scenario(seed);
    scenario.network.flavour = seed % 2 == 0 ? Flavour::kShm : Flavour::kVerbs;
    scenario.clients = 0;
    scenario.park_always = true;
    World world(seed, scenario);
    SimLibrary& library = add_libraries(world, {.sleeps_always = true}, 1);
    world.run();
    sleeps += library.sleeps();
    const rpc::LaneCounters counters = library.session().counters().sum();
    rings += counters.rings.get() + counters.ringing_requests.get();
    return outcome(world);
  });
  CHECK(is_met(sleeps));
  CHECK(is_met(rings));
}

TEST_CASE("long sets go in parts, each byte once and in order, before their commit, and nothing of them is left") {
  uint64_t committed = 0;
  for_each_seed(100, [&](uint64_t seed) {
    World world(seed, scenario_of_long_sets(seed));
    add_libraries(world, {.sleeps_always = seed % 3 == 0});
    world.run();
    committed += world.model.uploads().committed();
    return outcome_of_long_sets(world);
  });
  CHECK(is_met(committed));
}

TEST_CASE("long sets of libraries go through a relay, between the ops of proxies") {
  uint64_t committed = 0;
  for_each_seed(60, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.model.is_relayed = true;
    scenario.model.long_percent = 30;
    scenario.relayed.is_on = true;
    World world(seed, scenario);
    add_libraries(world, {.server = SimRelay::kAddress, .relayed_to = SimRelay::kMember});
    world.run();
    committed += world.model.uploads().committed();
    return outcome_of_long_sets(world);
  });
  CHECK(is_met(committed));
}

TEST_CASE(
    "long sets for which a relay finds no room are collected there, and take turns: none keeps the others from its own "
    "end") {
  uint64_t committed = 0, waits = 0;
  for_each_seed(100, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.model.is_relayed = true;
    scenario.model.long_percent = 70;
    scenario.relayed.is_on = true;
    scenario.layout.lanes = 1;
    scenario.item_size_max = kRoomForOne;
    if (seed % 2 == 1) scenario.relayed.collected_memory = 2 * kRoomForOne;
    scenario.clients = 0;
    World world(seed, scenario);
    add_libraries(world, {.server = SimRelay::kAddress, .relayed_to = SimRelay::kMember}, 5);
    world.run();
    committed += world.model.uploads().committed();
    waits += world.relay->relay().counters().waits;
    return outcome_of_long_sets(world);
  });
  CHECK(is_met(committed));
  CHECK(is_met(waits));
}

TEST_CASE("a long set whose session ends was done if its commit was, and is said to be unsent only before that") {
  uint64_t lost = 0, committed = 0;
  for_each_seed(150, [&](uint64_t seed) {
    Scenario scenario = scenario_of_long_sets(seed);
    scenario.model.may_be_lost = true;
    scenario.session.backoff_min_ns = 5'000;
    scenario.session.backoff_max_ns = 50'000;
    scenario.tick_ns = 10'000;
    scenario.time_heals = true;
    World world(seed, scenario);
    SimLibrary& library = add_libraries(world);
    Rng rng(seed + 1);
    for (int endings = 0; endings < 3; ++endings) {
      world.step_for(rng.below(60'000));
      if (library.session().is_open()) world.control.close(library.session().grant().session_id);
    }
    world.run();
    lost += world.model.lost();
    committed += world.model.uploads().committed();
    return outcome_of_long_sets(world);
  });
  CHECK(is_met(lost));
  CHECK(is_met(committed));
}

TEST_CASE("libraries and proxies share a relay") {
  for_each_seed(60, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.model.is_relayed = true;
    scenario.relayed.is_on = true;
    World world(seed, scenario);
    add_libraries(world,
                  {.server = SimRelay::kAddress, .relayed_to = SimRelay::kMember, .sleeps_always = seed % 3 == 0});
    world.run();
    return outcome(world);
  });
}

TEST_CASE("a program that stops in the middle of its ops slows nobody, and goes on when it is continued") {
  uint64_t stopped = 0;
  for_each_seed(60, [&](uint64_t seed) {
    World world(seed, shared_scenario(seed));
    SimLibrary& library = add_libraries(world);
    world.step_for(20'000 + 1'000 * (seed % 40));
    library.freeze(true);
    stopped += !library.is_finished();
    const auto are_others_done = [&] {
      const auto is_done = [](const auto& client) {
        return client->is_finished() && client->session().lanes().outstanding() == 0;
      };
      return std::ranges::all_of(world.clients, is_done);
    };
    if (!world.run_until(are_others_done)) world.model.fail("a proxy waits for a program that has stopped");
    library.freeze(false);
    world.run();
    return outcome(world);
  });
  CHECK(is_met(stopped));
}

TEST_CASE("a library whose session ends tells of every op once, and has another session") {
  uint64_t lost = 0;
  for_each_seed(100, [&](uint64_t seed) {
    Scenario scenario = shared_scenario(seed);
    scenario.model.may_be_lost = true;
    scenario.session.backoff_min_ns = 5'000;
    scenario.session.backoff_max_ns = 50'000;
    scenario.tick_ns = 10'000;
    scenario.time_heals = true;
    World world(seed, scenario);
    SimLibrary& library = add_libraries(world);
    Rng rng(seed + 1);
    for (int endings = 0; endings < 3; ++endings) {
      world.step_for(rng.below(40'000));
      if (library.session().is_open()) world.control.close(library.session().grant().session_id);
    }
    world.run();
    lost += world.model.lost();
    return outcome(world);
  });
  CHECK(is_met(lost));
}
