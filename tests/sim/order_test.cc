// Every op is executed exactly once, in lane order, and answered exactly once with its own result, whatever the network
// does.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

// Some ops take a lane's whole turn: the rest of what it was sent is put off.
class Dear final : public ModelHandler {
 public:
  Dear(World& world, uint32_t partition)
      : ModelHandler(world.model, partition, [&world] { world.preempt(); }), rng_(world.rng) {}

 protected:
  op::Result answer(const op::Op& op, rpc::LaneId lane) override {
    op::Result result = ModelHandler::answer(op, lane);
    if (rng_.percent(10)) result.work = 2000;
    return result;
  }

 private:
  Rng& rng_;
};

}  // namespace

TEST_CASE("verbs: every op is executed once, in order, and answered once with its own result") {
  rpc::LaneCounters client;
  uint64_t torn_requests = 0;
  for_each_seed(1500, [&](uint64_t seed) {
    World world(seed, any_scenario(seed));
    world.run();
    client += world.client_counters();
    torn_requests += world.server_counters().torn;
    return outcome(world);
  });
  CHECK(is_met(client.torn.get()));
  CHECK(is_met(torn_requests));
  CHECK(is_met(client.refetches.get()));
  CHECK(is_met(client.second_reads.get()));
  CHECK(is_met(client.replies.get()));
}

TEST_CASE("shm: every op is executed once, in order, and answered once with its own result") {
  for_each_seed(1500, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = Flavour::kShm;
    World world(seed, scenario);
    world.run();
    return outcome(world);
  });
}

TEST_CASE("one process: every op is executed once, in order, and answered once with its own result") {
  uint64_t served_by_others = 0, served_at_flush = 0, direct_ops = 0, together = 0, lent = 0;
  for_each_seed(1500, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.is_one_process = true;
    scenario.model.large_percent = 8;
    World world(seed, scenario, [](World& of, uint32_t partition) { return std::make_unique<Dear>(of, partition); });
    world.run();
    served_at_flush += scenario.clients == 1 ? world.server_counters().messages : 0;
    direct_ops += world.server.direct_ops;
    together += world.server.together;
    lent += world.model.lent();
    served_by_others += world.network.counters().rings;
    if (scenario.clients == 1) CHECK(world.network.counters().rings + world.network.counters().deliveries == 0);
    return outcome(world);
  });
  CHECK(is_met(served_at_flush));
  CHECK(is_met(served_by_others));
  CHECK(is_met(direct_ops));
  CHECK(is_met(together));
  CHECK(is_met(lent));
}

TEST_CASE("one process: what is sent while a lane is behind is executed, too, however much it is") {
  for_each_seed(500, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.is_one_process = true;
    scenario.clients = 1;
    scenario.layout.lanes = 2 + pick(seed, 3);
    scenario.layout.window = 16;
    scenario.burst = 2;
    scenario.ops_per_client = 200;
    World world(seed, scenario, [](World& of, uint32_t partition) { return std::make_unique<Dear>(of, partition); });
    world.model.on_answer = [&](OpRecord&) {
      if (world.rng.percent(90)) world.clients[0]->submit();
    };
    world.run();
    return outcome(world);
  });
}

TEST_CASE("a waiter may append further ops from within its result") {
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = seed % 2 == 0 ? Flavour::kVerbs : Flavour::kShm;
    scenario.is_one_process = seed % 5 == 4;
    scenario.clients = 1;
    scenario.ops_per_client = 200;
    scenario.clients_sleep_always = seed % 3 == 0;
    World world(seed, scenario);
    world.model.on_answer = [&](OpRecord&) {
      if (world.rng.percent(30)) world.clients[0]->submit();
    };
    world.run();
    return outcome(world);
  });
}

TEST_CASE("torn, late and repeated fetches are harmless: a slow network, a client that never sleeps") {
  rpc::LaneCounters client;
  for_each_seed(200, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.stall_percent = 30;
    scenario.network.stall_max_ns = 100'000;
    scenario.session.spin_ns = 1'000'000'000;
    scenario.session.fetch.max_refetches = 1'000'000;
    World world(seed, scenario);
    world.run();
    client += world.client_counters();
    return outcome(world);
  });
  CHECK(is_met(client.refetches.get()));
  CHECK(is_met(client.torn.get()));
  CHECK(client.wants.get() == 0);
}

TEST_CASE("the window is never exceeded, and credit comes back") {
  for_each_seed(300, [](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.layout.window = 2 + pick(seed, 3);
    scenario.burst = 60;
    scenario.network.flavour = seed % 2 == 0 ? Flavour::kVerbs : Flavour::kShm;
    World world(seed, scenario);
    uint32_t most = 0;
    for (const auto& client : world.clients) {
      client->on_turn = [&, session = &client->session()] {
        for (uint32_t lane = 0; lane < session->lanes().count(); ++lane)
          most = std::max(most, session->lanes()[lane].outstanding());
      };
    }
    world.run();
    if (most > scenario.layout.window) world.model.fail("more messages outstanding than the window has slots");
    for (const auto& client : world.clients) {
      if (client->session().lanes().outstanding() > 0) world.model.fail("credit is missing at the end");
    }
    return outcome(world);
  });
}

TEST_CASE("no more reads are posted than the read depth allows, and a depth of one suffices") {
  for_each_seed(300, [](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.read_depth = seed % 2 == 0 ? 1 : 16;
    scenario.layout.lanes = 4;
    scenario.burst = 60;
    World world(seed, scenario);
    world.run();
    if (world.network.counters().most_reads > scenario.network.read_depth) world.model.fail("too many reads");
    return outcome(world);
  });
}

TEST_CASE("a lane that is not answered does not keep the others from fetching, even with a read depth of one") {
  for_each_seed(40, [](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.read_depth = 1;
    scenario.network.stall_percent = 100;  // so long that the lane's slots, one after the other, are due all the time
    scenario.network.stall_max_ns = 500'000;
    scenario.layout.lanes = 2 + pick(seed, 3);
    scenario.clients = 1;
    scenario.ops_per_client = 200;
    scenario.session.spin_ns = 1'000'000'000;  // so that nothing is pushed
    scenario.session.fetch.max_refetches = 1'000'000;
    World world(seed, scenario);
    rpc::ClientSession& session = world.clients[0]->session();
    world.run_until([&] { return session.is_open(); });
    world.partitions[0]->freeze(true);
    world.run_until(
        [&] { return !session.lanes()[0].has_credit(); });  // now the client waits for a credit of that lane
    const auto others_are_served = [&] { return session.lanes().outstanding() == session.lanes()[0].outstanding(); };
    if (!world.run_until(others_are_served, 1'000'000)) world.model.fail("a lane starves");
    world.partitions[0]->freeze(false);
    world.run();
    return outcome(world);
  });
}

TEST_CASE("a body longer than the first read is completed by a second one") {
  uint64_t second_reads = 0;
  for_each_seed(200, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.layout.response_slot_size = 4096;
    scenario.session.fetch.min_fetch = scenario.session.fetch.max_fetch = seed % 2 == 0 ? 64 : 250;
    scenario.model.value_max = 3000;
    scenario.layout.request_slot_size = 4096;
    World world(seed, scenario);
    world.run();
    second_reads += world.client_counters().second_reads.get();
    return outcome(world);
  });
  CHECK(is_met(second_reads));
}

}  // namespace egret::sim
