// A relay between clients and a backend: lanes in, lanes out.
#include <algorithm>

#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"
#include "sim_relay.h"
#include "world.h"

using namespace egret;
using namespace egret::sim;

namespace {

Scenario relayed_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  Rng rng(seed ^ 0x5E1A7);
  scenario.network.flavour = rng.percent(30) ? Flavour::kShm : Flavour::kVerbs;
  scenario.clients = rng.between(1, 5);
  scenario.relayed.is_on = true;
  scenario.relayed.window = rng.between(2, 6);
  scenario.relayed.request_slot_size = 1024 + 512 * rng.below(4);
  scenario.relayed.response_slot_size = 1024 + 512 * rng.below(4);
  scenario.relayed.kept_memory = rng.percent(50) ? 16 << 20 : rng.below(4096);  // for a value or two, or for none
  scenario.model.is_relayed = true;
  return scenario;
}

rpc::relay::RelayCounters operator+=(rpc::relay::RelayCounters& sum, const rpc::relay::RelayCounters& one) {
  sum.waits += one.waits;
  sum.refused += one.refused;
  sum.not_sent += one.not_sent;
  sum.cut += one.cut;
  return sum;
}

void step_for(World& world, uint64_t steps) {
  for (; steps > 0 && !world.model.has_failed(); --steps) world.step();
}

}  // namespace

TEST_CASE("through a relay every op is executed once, in its lane's order, and answered once with its own result") {
  rpc::relay::RelayCounters counters;
  uint64_t shared = 0;
  for_each_seed(150, [&](uint64_t seed) {
    World world(seed, relayed_scenario(seed));
    world.run();
    counters += world.relay->relay().counters();
    const rpc::LaneCounters out = world.relay->session().counters().sum();
    shared += world.relay->relay().poller_counters().messages > out.messages.get();
    return outcome(world);
  });
  CHECK(is_met(counters.waits));
  CHECK(is_met(shared));  // messages of several clients went as one
}

TEST_CASE("clients, relay and backend that sleep at every opportunity wake each other") {
  uint64_t sleeps = 0, naps = 0;
  for_each_seed(150, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.clients_sleep_always = true;
    scenario.park_always = true;
    scenario.lane_idle_ns = 0;
    if (pick(seed, 2) == 0) scenario.clients = 1;
    World world(seed, scenario);
    world.run();
    sleeps += world.relay->sleeps();
    naps += world.relay->relay().poller_counters().naps;
    return outcome(world);
  });
  CHECK(is_met(sleeps));
  CHECK(is_met(naps));
}

TEST_CASE(
    "a relay loses its session: each op is answered once, none is done twice, and what was not sent is not done") {
  uint64_t lost = 0, survived = 0, not_sent = 0;
  for_each_seed(150, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.model.may_be_lost = true;
    scenario.time_heals = true;
    World world(seed, scenario);
    Rng rng(seed + 1);
    for (int times = 0; times < 3; ++times) {
      step_for(world, rng.below(15'000));
      world.control.close(world.control.any_session(rng));
    }
    world.run();
    lost += world.relay->lost();
    not_sent += world.relay->relay().counters().not_sent;
    for (const auto& client : world.clients) survived += client->sessions_lost() == 0;
    return outcome(world);
  });
  CHECK(is_met(lost));
  CHECK(is_met(not_sent));
  CHECK(is_met(survived));
}

TEST_CASE("inbound sessions that end at any moment cost the others nothing") {
  uint64_t ended = 0;
  for_each_seed(150, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.clients = 3;
    scenario.model.may_be_lost = true;
    scenario.time_heals = true;
    World world(seed, scenario);
    Rng rng(seed + 1);
    for (int times = 0; times < 4; ++times) {
      step_for(world, rng.below(10'000));
      world.relay->end_one(rng);
    }
    world.run();
    for (const auto& client : world.clients) ended += client->sessions_lost();
    return world.relay->lost() > 0 ? "the relay's own session ended" : outcome(world);
  });
  CHECK(is_met(ended));
}

TEST_CASE("clients that are stopped keep nobody waiting") {
  for_each_seed(100, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.clients = 4;
    scenario.layout.window = 2;
    scenario.burst = 20;
    World world(seed, scenario);
    Rng rng(seed + 1);
    step_for(world, rng.below(20'000));
    world.clients[0]->freeze(true);
    world.clients[1]->freeze(true);
    const auto others_are_done = [&] {
      return world.clients[2]->is_finished() && world.clients[3]->is_finished() &&
             world.clients[2]->session().lanes().outstanding() + world.clients[3]->session().lanes().outstanding() == 0;
    };
    if (!world.run_until(others_are_done)) return "the others wait\n  " + world.describe();
    world.clients[0]->freeze(false);
    world.clients[1]->freeze(false);
    world.run();
    return outcome(world);
  });
}

TEST_CASE("with one credit for many clients each has its turn") {
  for_each_seed(60, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.clients = 5;
    scenario.layout.lanes = 1;
    scenario.layout.window = 2;
    scenario.burst = 40;
    scenario.ops_per_client = 400;
    scenario.model.large_percent = 0;
    World world(seed, scenario);
    const auto is_one_done = [&] {
      return std::ranges::any_of(world.clients, [](const auto& client) { return client->is_finished(); });
    };
    if (!world.run_until(is_one_done)) return "nobody is done\n  " + world.describe();
    for (const auto& client : world.clients) {
      if (client->session().counters().sum().ops.get() < 100) return "one has hardly had a turn\n  " + world.describe();
    }
    world.run();
    return outcome(world);
  });
}

TEST_CASE("the relay's session changes its size, and its clients do not notice") {
  uint64_t grown = 0;
  for_each_seed(100, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.network.flavour = Flavour::kVerbs;
    scenario.layout.window = 8;
    scenario.clients = 4;
    scenario.burst = 20;
    scenario.ops_per_client = 300;
    scenario.relayed.growth = {.window = 2, .slot_size = 0, .idle_ns = 0, .least_stay_ns = 10'000};
    scenario.time_heals = true;
    scenario.tick_ns = 50'000;
    World world(seed, scenario);
    world.run();
    grown += world.relay->session().counters().grown.get();
    for (const auto& client : world.clients) {
      if (client->sessions_lost() > 0) return std::string("a client lost its session");
    }
    return outcome(world);
  });
  CHECK(is_met(grown));
}

TEST_CASE("another backend process ends inbound sessions, and they begin anew") {
  for_each_seed(40, [&](uint64_t seed) {
    Scenario scenario = relayed_scenario(seed);
    scenario.model.may_be_lost = true;
    scenario.time_heals = true;
    scenario.session.backoff_min_ns = 100'000;
    World world(seed, scenario);
    Rng rng(seed + 1);
    const auto are_all_open = [&] {
      return std::ranges::all_of(world.clients, [](const auto& client) { return client->session().is_open(); });
    };
    if (!world.run_until(are_all_open)) return std::string("no sessions");
    step_for(world, rng.below(5'000));
    world.server.become_another();
    world.control.close(world.control.any_session(rng));
    const auto have_all_begun_anew = [&] {
      return are_all_open() && world.relay->session().is_open() && world.relay->session().grant().epoch == 2 &&
             std::ranges::all_of(world.clients, [](const auto& client) {
               return client->sessions_lost() == 1 && client->session().grant().epoch == 2;
             });
    };
    if (!world.run_until(have_all_begun_anew)) return "not all sessions began anew\n  " + world.describe();
    for (const auto& client : world.clients) client->submit_more(20);
    world.run();
    return outcome(world);
  });
}
