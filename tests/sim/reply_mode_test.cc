// Server reply: entered after two messages in a row with more than R refetches, left again when processing is short;
// and the two fixed modes. In each mode a sleeping thread is woken.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

using rpc::FetchMode;
using Mode = rpc::FetchPolicy::Mode;

// One client, one lane, one op at a time; processing takes as long as `pause_ns` says.
struct Slow {
  Slow(uint64_t seed, Flavour flavour, FetchMode mode = FetchMode::kAuto, bool sleeps = false)
      : world(seed, scenario(seed, flavour, mode, sleeps), [this](World& of, uint32_t partition) {
          return std::make_unique<ModelHandler>(of.model, partition, [this, &of] { of.pass_time(pause_ns); });
        }) {
    world.run_until([&] { return world.clients[0]->session().is_open(); });
  }

  static Scenario scenario(uint64_t seed, Flavour flavour, FetchMode mode, bool sleeps) {
    Scenario scenario;
    scenario.knows_deliver = seed / 2 % 2 == 0;
    scenario.network = {.flavour = flavour, .stall_percent = 0};
    scenario.layout.lanes = 1;
    scenario.clients = 1;
    scenario.ops_per_client = 0;
    scenario.burst = 1;
    scenario.clients_sleep_always = sleeps;
    scenario.session.spin_ns = 1'000'000;
    scenario.session.fetch.short_processing_ns = 7'000;
    scenario.session.fetch.mode = mode;
    scenario.step_max_ns = 30;
    return scenario;
  }
  // Sends one op and waits for its answer.
  void one_op() {
    world.clients[0]->submit_more(1);
    world.run();
  }
  void ops(int count) {
    for (; count > 0; --count) one_op();
  }
  Mode mode() { return world.clients[0]->session().lanes()[0].progress().mode; }
  const rpc::LaneCounters& counters() { return world.clients[0]->session().counters().at(0); }
  // Times that pushes were asked for.
  uint64_t asked() { return counters().wants.get() + counters().asked.get(); }

  uint64_t pause_ns = 0;
  World world;
};

Flavour flavour_of(uint64_t seed) {
  return seed % 2 == 0 ? Flavour::kVerbs : Flavour::kShm;
}

}  // namespace

TEST_CASE("slow processing makes the client ask for pushes; short processing makes it fetch again") {
  for_each_seed(40, [](uint64_t seed) {
    Slow slow(seed, flavour_of(seed));
    slow.ops(5);
    if (slow.mode() != Mode::kFetch)
      return std::string();  // a slow network can do it; the policy's own tests are exact
    slow.pause_ns = 20'000;
    for (int slow_ops = 0; slow.mode() == Mode::kFetch && slow_ops < 50; ++slow_ops) slow.one_op();
    if (slow.mode() != Mode::kReply) {
      // Unless it fetches at about the right moment already: with less than one fetch in vain in four messages.
      const uint64_t before = slow.counters().refetches.get();
      slow.ops(400);
      const uint64_t in_vain = slow.counters().refetches.get() - before;
      return in_vain < 100 ? std::string() : std::to_string(in_vain) + " of 400 in vain, and it still fetches";
    }
    if (slow.counters().switches_to_reply.get() != 1) return std::string("the switch was not counted");
    const uint64_t asked = slow.asked();
    slow.ops(5);
    if (slow.asked() == asked) return std::string("reply mode, and it does not ask");
    slow.pause_ns = 0;
    int short_ops = 0;
    for (; slow.mode() == Mode::kReply && short_ops < 500; ++short_ops) slow.one_op();
    if (slow.mode() != Mode::kFetch) return std::string("short processing did not lead back to fetching");
    if (slow.counters().switches_to_fetch.get() != 1) return std::string("the switch back was not counted");
    return outcome(slow.world);
  });
}

TEST_CASE("a lane goes over with the second message in a row that took more than R fetches in vain, no other") {
  uint64_t switched = 0, spared = 0;
  for_each_seed(100, [&](uint64_t seed) {
    Slow slow(seed, Flavour::kVerbs);
    uint32_t in_a_row = 0;
    for (int message = 0; message < 60 && slow.mode() == Mode::kFetch; ++message) {
      slow.pause_ns = slow.world.rng.percent(50) ? 40'000 : 0;
      const uint64_t before = slow.counters().refetches.get() + slow.counters().torn.get();
      slow.one_op();
      const uint64_t in_vain = slow.counters().refetches.get() + slow.counters().torn.get() - before;
      const bool is_slow = in_vain > slow.world.scenario.session.fetch.max_refetches;
      spared += in_a_row == 1 && !is_slow;
      in_a_row = is_slow ? in_a_row + 1 : 0;
      if ((in_a_row >= 2) != (slow.mode() == Mode::kReply)) {
        return "after " + std::to_string(in_vain) + " fetches in vain, slow in a row: " + std::to_string(in_a_row);
      }
    }
    switched += slow.mode() == Mode::kReply;
    return outcome(slow.world);
  });
  CHECK(is_met(switched));
  CHECK(is_met(spared));  // one slow message alone
}

TEST_CASE(
    "set to fetch, a lane never asks with the request, however slow processing is, and is answered all the same") {
  for_each_seed(40, [](uint64_t seed) {
    Slow slow(seed, flavour_of(seed), FetchMode::kFetch);
    slow.pause_ns = 40'000;
    slow.ops(20);
    if (slow.mode() != Mode::kFetch) return std::string("it went over");
    const rpc::LaneCounters& counters = slow.counters();
    if (counters.wants.get() + counters.replies.get() > 0) return std::string("it asked, although it never slept");
    return outcome(slow.world);
  });
}

TEST_CASE("set to fetch, a client that sleeps still asks to be woken, and is") {
  uint64_t replies = 0;
  for_each_seed(200, [&](uint64_t seed) {
    Slow slow(seed, flavour_of(seed), FetchMode::kFetch, true);
    slow.pause_ns = seed % 3 == 0 ? 0 : 20'000;
    slow.ops(20);
    if (slow.mode() != Mode::kFetch) return std::string("it went over");
    if (slow.world.clients[0]->sleeps() > 0 && slow.pause_ns > 0 && slow.counters().wants.get() == 0) {
      return std::string("it slept and had not asked");
    }
    replies += slow.counters().replies.get();
    return outcome(slow.world);
  });
  CHECK(is_met(replies));
}

TEST_CASE("set to server reply, a lane asks with every message, gets slow results pushed, and never changes mode") {
  uint64_t replies = 0;
  for_each_seed(40, [&](uint64_t seed) {
    Slow slow(seed, flavour_of(seed), FetchMode::kReply);
    slow.ops(100);
    slow.pause_ns = 20'000;
    slow.ops(20);
    const rpc::LaneCounters& counters = slow.counters();
    if (slow.mode() != Mode::kReply) return std::string("it went back to fetching");
    if (counters.switches_to_reply.get() + counters.switches_to_fetch.get() > 0) return std::string("it switched");
    // Over a network it asks with every request; on shm by a store before sleeping, if the result is not there.
    if (seed % 2 == 0 && slow.asked() != counters.messages.get()) return std::string("a request that does not ask");
    const bool can_ask = seed % 4 == 0;
    if (can_ask && counters.wants.get() + counters.fetches.get() > 0)
      return std::string("it wants, or fetches, besides");
    if (!can_ask && counters.asked.get() + counters.ringing_requests.get() > 0) return std::string("a flag for nobody");
    if (counters.replies.get() < 20)
      return "of 20 slow results " + std::to_string(counters.replies.get()) + " came by push";
    replies += counters.replies.get();
    return outcome(slow.world);
  });
  CHECK(is_met(replies));
}

TEST_CASE("in every mode, whatever the network does: each op is answered once, and no wake-up is lost") {
  rpc::LaneCounters seen[3];
  for_each_seed(900, [&](uint64_t seed) {
    const FetchMode mode = std::array{FetchMode::kAuto, FetchMode::kFetch, FetchMode::kReply}[seed % 3];
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = flavour_of(seed / 3);
    scenario.session.fetch.mode = mode;
    scenario.session.fetch.max_refetches = pick(seed, 4);
    scenario.clients_sleep_always = seed % 4 == 0;
    scenario.park_always = seed % 5 == 0;
    World world(seed, scenario);
    world.run();
    seen[seed % 3] += world.client_counters();
    return outcome(world);
  });
  CHECK(is_met(seen[0].switches_to_reply.get()));
  CHECK(is_met(seen[0].replies.get()));
  CHECK(is_met(seen[1].replies.get()));
  CHECK(is_met(seen[2].replies.get()));
  CHECK(seen[1].switches_to_reply.get() + seen[2].switches_to_reply.get() == 0);
  CHECK(seen[1].switches_to_fetch.get() + seen[2].switches_to_fetch.get() == 0);
}

}  // namespace egret::sim
