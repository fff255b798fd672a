// Timeouts, lost and new sessions: every waiter is called exactly once, and no slot is reused too early.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

// Times small enough that a run meets many of them.
Scenario impatient_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.network.flavour = seed % 3 == 0 ? Flavour::kShm : Flavour::kVerbs;
  scenario.is_one_process = seed % 5 == 4;
  scenario.session.op_timeout_ns = 100'000;
  scenario.session.connect_timeout_ns = 200'000;
  scenario.session.backoff_min_ns = 5'000;
  scenario.session.backoff_max_ns = 50'000;
  scenario.tick_ns = 10'000;
  scenario.time_heals = true;
  scenario.clients_sleep_always = seed % 2 == 0;
  scenario.ops_per_client = 100;
  scenario.pause_max_ns = 0;
  return scenario;
}

void thaw_all(World& world) {
  for (const auto& partition : world.partitions) partition->freeze(false);
}

}  // namespace

TEST_CASE("an op that times out is answered, its slot stays abandoned until its old response is seen") {
  uint64_t timed_out = 0;
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = impatient_scenario(seed);
    scenario.model.may_time_out = true;
    scenario.session.op_timeout_ns = 300'000;
    World world(seed, scenario);
    Rng rng(seed + 1);
    uint32_t most = 0;
    for (const auto& client : world.clients) {
      client->on_turn = [&, session = &client->session()] {
        for (uint32_t lane = 0; lane < session->lanes().count(); ++lane)
          most = std::max(most, session->lanes()[lane].outstanding());
      };
    }
    const auto all_back = [&] {
      return std::ranges::all_of(world.clients,
                                 [](const auto& client) { return client->session().lanes().outstanding() == 0; });
    };
    for (int pauses = 0; pauses < 3; ++pauses) {
      world.step_for(rng.below(60'000));
      Partition& slow = *world.partitions[rng.below(static_cast<uint32_t>(world.partitions.size()))];
      slow.freeze(true);
      world.step_for(280'000 + rng.below(60'000));  // ops time out, and the session does not end yet
      slow.freeze(false);
      if (!world.run_until(all_back)) world.model.fail("a late response has not freed its slot");
    }
    world.run();
    // A slot used again too early would have been executed out of order or answered with another's result.
    if (most > scenario.layout.window) world.model.fail("an abandoned slot was given out again");
    timed_out += world.model.timed_out();
    for (const auto& client : world.clients) {
      if (client->sessions_lost() > 0) world.model.fail("a session was lost: " + client->why_lost());
    }
    if (!world.run_until(all_back)) world.model.fail("a late response has not freed its slot");
    return outcome(world);
  });
  CHECK(is_met(timed_out));
}

TEST_CASE("a lane that stays stuck ends its session: all are answered once, and a new session serves") {
  uint64_t lost = 0;
  for_each_seed(200, [&](uint64_t seed) {
    Scenario scenario = impatient_scenario(seed);
    scenario.model.may_time_out = scenario.model.may_be_lost = true;
    World world(seed, scenario);
    Rng rng(seed + 1);
    world.step_for(rng.below(60'000));
    world.partitions[0]->freeze(true);
    world.step_for(400'000);
    thaw_all(world);
    world.run();
    for (const auto& client : world.clients) lost += client->sessions_lost();
    return outcome(world);
  });
  CHECK(is_met(lost));
}

TEST_CASE("a session that is lost answers every waiter exactly once, and comes back") {
  uint64_t lost_ops = 0;
  for_each_seed(500, [&](uint64_t seed) {
    Scenario scenario = impatient_scenario(seed);
    scenario.session.op_timeout_ns = 1'000'000'000;
    scenario.model.may_be_lost = true;
    World world(seed, scenario);
    Rng rng(seed + 1);
    for (int endings = 0; endings < 3; ++endings) {
      world.step_for(rng.below(40'000));
      SimClient& victim = *world.clients[rng.below(static_cast<uint32_t>(world.clients.size()))];
      if (!victim.session().is_open()) continue;
      const bool by_server = rng.percent(70);
      const bool refuse = rng.percent(30);
      world.network.refuse_connections(refuse);
      if (by_server) {
        world.control.close(victim.session().grant().session_id);
      } else {
        victim.session().close();
      }
      if (refuse) world.step_for(100'000);
      world.network.refuse_connections(false);
    }
    world.run();
    lost_ops += world.model.lost();
    return outcome(world);
  });
  CHECK(is_met(lost_ops));
}

TEST_CASE("a waiter that is told of the loss may try again at once") {
  for_each_seed(100, [&](uint64_t seed) {
    Scenario scenario = impatient_scenario(seed);
    scenario.session.op_timeout_ns = 1'000'000'000;
    scenario.model.may_be_lost = true;
    World world(seed, scenario);
    world.model.on_answer = [&](OpRecord& record) {
      if (!op::has_no_answer(record.answer)) return;
      for (const auto& client : world.clients) {
        if (!client->is_finished()) client->on_credit();  // is refused, since the session is no longer open
      }
    };
    Rng rng(seed + 1);
    world.step_for(rng.below(40'000));
    for (const auto& client : world.clients) client->session().close();
    world.run();
    return outcome(world);
  });
}

}  // namespace egret::sim
