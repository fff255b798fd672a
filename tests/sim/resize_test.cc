// Sessions that change their size: no op is lost, executed twice, overtaken or answered with another's result.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

constexpr uint64_t kIdleNs = 3 * rpc::WindowPlan::kWithinNs;

// A burst does not fit the slots that a session begins with; it may ask for more in almost every tick.
Scenario growing_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.network.flavour = Flavour::kVerbs;
  scenario.layout.window = 4 + pick(seed, 9);
  scenario.session.growth = {.window = 2, .slot_size = 0, .idle_ns = kIdleNs, .least_stay_ns = 5'000};
  scenario.session.backoff_min_ns = 5'000;
  scenario.session.backoff_max_ns = 50'000;
  scenario.tick_ns = 2'000 + 1'000 * pick(seed, 7);
  scenario.time_heals = true;
  scenario.clients_sleep_always = seed % 2 == 0;
  scenario.burst = 20;
  scenario.ops_per_client = 300;
  return scenario;
}

struct Resizes {
  uint64_t grown = 0, given_back = 0, kept = 0;
  void add(const World& world) {
    for (const auto& client : world.clients) {
      rpc::SessionCounters& counters = client->session().counters();
      grown += counters.grown.get();
      given_back += counters.given_back.get();
      kept += counters.not_resized.get();
    }
  }
};

// So much time goes by with nothing to do; sessions are looked at as a worker does.
void be_idle(World& world) {
  for (uint64_t passed = 0; passed < 2 * kIdleNs; passed += transport::kKeepAliveNs) {
    world.advance_ns(transport::kKeepAliveNs);
    for (const auto& client : world.clients) client->session().keep_alive();
  }
}

}  // namespace

TEST_CASE("a session grows under load, and nobody notices") {
  Resizes met;
  for_each_seed(200, [&](uint64_t seed) {
    World world(seed, growing_scenario(seed));
    world.run();
    met.add(world);
    for (const auto& client : world.clients) {
      if (client->sessions_lost() > 0) world.model.fail("a session was lost: " + client->why_lost());
    }
    return outcome(world);
  });
  CHECK(is_met(met.grown));
}

TEST_CASE("an idle session gives its slots back, and grows again") {
  Resizes met;
  for_each_seed(100, [&](uint64_t seed) {
    World world(seed, growing_scenario(seed));
    for (int rounds = 0; rounds < 3; ++rounds) {
      world.run();
      be_idle(world);
      // Whoever has begun to give back ends that while the next load comes.
      for (const auto& client : world.clients) client->submit_more(200);
    }
    world.run();
    met.add(world);
    return outcome(world);
  });
  CHECK(is_met(met.grown));
  CHECK(is_met(met.given_back));
}

TEST_CASE("a session that is to grow while sessions end and are refused answers every waiter exactly once") {
  Resizes met;
  uint64_t lost_ops = 0;
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = growing_scenario(seed);
    scenario.model.may_be_lost = true;
    World world(seed, scenario);
    Rng rng(seed + 1);
    // Any session of any client: the one that serves, or the one that is to take its place.
    world.on_step = [&] {
      if (!rng.percent(1) || !rng.percent(10)) return;
      world.network.refuse_connections(rng.percent(30));
      const uint64_t session = world.control.any_session(rng);
      if (session != 0) world.control.close(session);
    };
    for (uint64_t steps = rng.between(5'000, 30'000); steps > 0 && !world.model.has_failed(); --steps) world.step();
    world.on_step = {};
    world.network.refuse_connections(false);
    world.run();
    lost_ops += world.model.lost();
    met.add(world);
    return outcome(world);
  });
  CHECK(is_met(met.grown));
  CHECK(is_met(met.kept));
  CHECK(is_met(lost_ops));
}

}  // namespace egret::sim
