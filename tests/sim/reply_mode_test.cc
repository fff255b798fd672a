// Server reply: entered after two slow messages in a row, left again when processing is short.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

using Mode = rpc::FetchPolicy::Mode;

// One client, one lane, one op at a time; processing takes as long as `pause_ns` says.
struct Slow {
  explicit Slow(uint64_t seed, Flavour flavour)
      : world(seed, scenario(flavour), [this](World& of, uint32_t partition) {
          return std::make_unique<ModelHandler>(of.model, partition, [this, &of] { of.pass_time(pause_ns); });
        }) {}

  static Scenario scenario(Flavour flavour) {
    Scenario scenario;
    scenario.network = {.flavour = flavour, .stall_percent = 0};
    scenario.layout.lanes = 1;
    scenario.clients = 1;
    scenario.ops_per_client = 0;
    scenario.burst = 1;
    scenario.session.spin_ns = 1'000'000;
    scenario.session.fetch.short_processing_ns = 7'000;
    scenario.step_max_ns = 30;
    return scenario;
  }
  // Sends one op and waits for its answer.
  void one_op() {
    world.clients[0]->submit_more(1);
    world.run();
  }
  Mode mode() { return world.clients[0]->session().lane(0).policy().mode(); }

  uint64_t pause_ns = 0;
  World world;
};

}  // namespace

TEST_CASE("slow processing makes the client ask for pushes; short processing makes it fetch again") {
  for_each_seed(40, [](uint64_t seed) {
    Slow slow(seed, seed % 2 == 0 ? Flavour::kVerbs : Flavour::kShm);
    slow.world.run_until([&] { return slow.world.clients[0]->session().is_open(); });
    for (int i = 0; i < 5; ++i) slow.one_op();
    if (slow.mode() != Mode::kFetch)
      return std::string();  // a slow network can do it; the policy's own tests are exact
    slow.pause_ns = 20'000;
    int slow_ops = 0;
    for (; slow.mode() == Mode::kFetch && slow_ops < 50; ++slow_ops) slow.one_op();
    if (slow.mode() != Mode::kReply) return std::string("slow processing never entered reply mode");
    const uint64_t wants = slow.world.client_counters().wants;
    for (int i = 0; i < 5; ++i) slow.one_op();
    if (slow.world.client_counters().wants == wants) return std::string("reply mode without want");
    slow.pause_ns = 0;
    int short_ops = 0;
    for (; slow.mode() == Mode::kReply && short_ops < 500; ++short_ops) slow.one_op();
    if (slow.mode() != Mode::kFetch) return std::string("short processing did not lead back to fetching");
    return outcome(slow.world);
  });
}

}  // namespace egret::sim
