// Sessions that have two transports: while RDMA cannot be had they go by TCP, and they return by themselves. Nothing is
// sent twice, and nothing of a session before takes effect when the next one has begun to.
#include <map>

#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

using rpc::TransportChoice;

Scenario mixed_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.has_two_transports = true;
  scenario.session.op_timeout_ns = 60'000'000'000;
  scenario.session.backoff_min_ns = 5'000;
  scenario.session.backoff_max_ns = 50'000;
  scenario.tick_ns = 5'000;
  scenario.time_heals = true;
  scenario.clients_sleep_always = seed % 2 == 0;
  scenario.ops_per_client = 200;
  return scenario;
}

std::string by_rdma(const SimClient& client) {
  return transport::alternatives_of(client.address())[0];
}
std::string by_tcp(const SimClient& client) {
  return transport::alternatives_of(client.address())[1];
}

bool is_on(SimClient& client, std::string_view transport) {
  return client.session().is_open() &&
         client.session().counters().transport.get() == transport::number_of_transport(transport);
}

// A client's queue pairs give up; the server is not told. `hangs`: what asks for new ones hears nothing, and what was
// under way to the server waits; else there is no device.
void take_rdma_away(World& world, const SimClient& client, bool hangs) {
  if (hangs) {
    world.network.cut(by_rdma(client), {.to_server = true, .to_client = true});
  } else {
    world.network.refuse_connections(by_rdma(client), true);
  }
  world.network.break_clients(by_rdma(client));
}

void give_rdma_back(World& world, const SimClient& client) {
  world.network.refuse_connections(by_rdma(client), false);
  world.network.cut(by_rdma(client), {});
}

// No op of a client's older session is executed after one of a newer session of it.
void watch_succession(World& world, std::map<uint64_t, uint64_t>& newest) {
  world.model.on_execute = [&](const OpRecord& record) {
    uint64_t& session = newest[world.control.worker(record.session_id) / 2];  // twins are one worker
    if (record.session_id < session) world.model.fail("an op took effect after its session had a follower");
    session = std::max(session, record.session_id);
  };
}

// Time goes by as a worker sees it that has nothing to do.
void pass_idle(World& world, uint64_t ns) {
  for (uint64_t passed = 0; passed < ns && !world.model.has_failed(); passed += transport::kKeepAliveNs) {
    world.advance_ns(transport::kKeepAliveNs);
    for (const auto& client : world.clients) client->session().keep_alive();
    for (int steps = 0; steps < 2'000; ++steps) world.step();
  }
}

// Attempts that nobody answers are given up.
void outlast_head_start(World& world) {
  for (int rounds = 0; rounds < 4; ++rounds) {
    for (int steps = 0; steps < 3'000; ++steps) world.step();
    world.advance_ns(TransportChoice::kHeadStartNs);
  }
}

bool all_on(World& world, std::string_view transport) {
  return std::ranges::all_of(world.clients, [&](const auto& client) { return is_on(*client, transport); });
}

}  // namespace

TEST_CASE("without RDMA a session goes by TCP from its beginning") {
  for_each_seed(100, [&](uint64_t seed) {
    World world(seed, mixed_scenario(seed));
    for (const auto& client : world.clients) {
      take_rdma_away(world, *client, seed % 3 == 0);
      client->session().close();  // the attempt that has begun with the world
    }
    outlast_head_start(world);
    world.run();
    if (!all_on(world, "tcp")) world.model.fail("a session does not go by TCP");
    for (const auto& client : world.clients) {
      if (client->session().counters().signs.failures.get() > 1) world.model.fail("the backend counts as failed");
    }
    return outcome(world);
  });
}

TEST_CASE("with RDMA it never goes by TCP") {
  for_each_seed(50, [&](uint64_t seed) {
    World world(seed, mixed_scenario(seed));
    world.run();
    if (!all_on(world, "rdma")) world.model.fail("a session does not go by RDMA");
    return outcome(world);
  });
}

TEST_CASE("when RDMA is lost under load the session goes on by TCP, and returns under load") {
  uint64_t lost = 0, fell_back = 0, returned = 0;
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = mixed_scenario(seed);
    scenario.model.may_be_lost = true;
    World world(seed, scenario);
    std::map<uint64_t, uint64_t> newest;
    watch_succession(world, newest);
    Rng rng(seed + 1);
    const bool hangs = rng.percent(50);
    for (uint32_t steps = rng.between(500, 8'000); steps > 0; --steps) world.step();
    // A partition that does not get a processor executes what it has when it gets one, or nothing of it.
    Partition& slow = *world.partitions[rng.below(static_cast<uint32_t>(world.partitions.size()))];
    slow.freeze(rng.percent(50));
    for (uint32_t steps = rng.between(1, 2'000); steps > 0; --steps) world.step();
    for (const auto& client : world.clients) take_rdma_away(world, *client, hangs);
    for (uint32_t steps = rng.between(1, 20'000); steps > 0; --steps) world.step();
    slow.freeze(false);
    outlast_head_start(world);
    world.run();
    for (const auto& client : world.clients) client->submit_more(200);
    if (!world.run_until([&] { return all_on(world, "tcp"); })) world.model.fail("a session does not go on by TCP");
    for (const auto& client : world.clients) give_rdma_back(world, *client);
    // What waited on the way arrives now: at memory that nobody reads.
    for (const auto& client : world.clients) client->submit_more(300);
    world.advance_ns(2 * TransportChoice::kFirstReturnNs);
    world.run();
    // Those that were tried once in vain, or whose load was over before, return a while later.
    pass_idle(world, 8 * TransportChoice::kFirstReturnNs);
    if (!all_on(world, "rdma")) world.model.fail("a session does not return to RDMA");
    for (const auto& client : world.clients) client->submit_more(50);
    world.run();
    lost += world.model.lost();
    for (const auto& client : world.clients) {
      fell_back += client->session().counters().fell_back.get();
      returned += client->session().counters().returned.get();
    }
    return outcome(world);
  });
  CHECK(is_met(lost));
  CHECK(is_met(fell_back));
  CHECK(is_met(returned));
}

TEST_CASE("whatever comes and goes, every waiter is answered exactly once and in succession") {
  uint64_t lost = 0, fell_back = 0, returned = 0;
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = mixed_scenario(seed);
    scenario.model.may_be_lost = true;
    scenario.session.growth = {.window = 2, .slot_size = 0, .idle_ns = 0, .least_stay_ns = 5'000};
    scenario.layout.window = 4 + pick(seed, 5);
    World world(seed, scenario);
    std::map<uint64_t, uint64_t> newest;
    watch_succession(world, newest);
    Rng rng(seed + 1);
    world.on_step = [&] {
      if (!rng.percent(1) || !rng.percent(20)) return;
      SimClient& client = *world.clients[rng.below(static_cast<uint32_t>(world.clients.size()))];
      give_rdma_back(world, client);
      world.network.refuse_connections(by_tcp(client), rng.percent(20));
      if (rng.percent(60)) take_rdma_away(world, client, rng.percent(50));
      if (rng.percent(20)) world.control.close(world.control.any_session(rng));
      if (rng.percent(50)) world.advance_ns(rng.below(2'000'000'000));
    };
    for (uint64_t steps = rng.between(5'000, 30'000); steps > 0 && !world.model.has_failed(); --steps) world.step();
    world.on_step = {};
    for (const auto& client : world.clients) {
      give_rdma_back(world, *client);
      world.network.refuse_connections(by_tcp(*client), false);
    }
    world.run();
    lost += world.model.lost();
    for (const auto& client : world.clients) {
      fell_back += client->session().counters().fell_back.get();
      returned += client->session().counters().returned.get();
    }
    return outcome(world);
  });
  CHECK(is_met(lost));
  CHECK(is_met(fell_back));
  CHECK(is_met(returned));
}

TEST_CASE("over TCP alone the sessions' order, sleep and growth hold") {
  for_each_seed(200, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = Flavour::kTcp;
    scenario.clients_sleep_always = seed % 2 == 0;
    scenario.park_always = seed % 3 == 0;
    World world(seed, scenario);
    world.run();
    return outcome(world);
  });
}

}  // namespace egret::sim
