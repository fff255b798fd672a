// The driver of a client, over a node that answers when it is told to and by a clock that the test turns.
#include "bench_paradigms/harness/driver.h"

#include <deque>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "bench/keyspace.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

uint64_t g_now = 0;
uint64_t now() {
  return g_now;
}

// Takes up to `room` ops; answers the oldest when the test says so.
class FakeNode final : public ClientNode {
 public:
  egret::base::Status prepare() override { return egret::base::Status::ok(); }
  std::string notice(NodeId /*to*/) override { return ""; }
  egret::base::Status join(NodeId /*from*/, const NodeAddress& /*address*/, std::string_view /*notice*/) override {
    return egret::base::Status::ok();
  }
  bool begin(const Op& op) override {
    if (taken.size() == room) return false;
    taken.push_back(op);
    values.emplace_back(op.value);
    return true;
  }
  uint32_t poll(std::span<Result> out) override {
    uint32_t found = 0;
    while (found < out.size() && !answers.empty()) {
      out[found++] = answers.front();
      answers.pop_front();
    }
    return found;
  }
  Trouble trouble() const override { return {}; }

  void answer(Outcome outcome, std::string_view value = {}) {
    answers.push_back({taken.front().ticket, outcome, value});
    taken.pop_front();
  }

  size_t room = 64;
  std::deque<Op> taken;
  std::deque<std::string> values;
  std::deque<Result> answers;
};

// All that a driver needs.
struct Bench {
  explicit Bench(const WorkloadSpec& workload, Load load = {}, uint32_t window = 4) : spec(workload) {
    g_now = 1000;
    plan.window = window;
    plan.clients = spec.clients;
    plan.keys = &keys;
    driver =
        std::make_unique<Driver>(Driver::Parts{plan, node, knowledge, spec, now}, 0, pace_of(plan, load, 0, g_now));
  }
  // The right answer to the oldest op, which is a get of a loaded value.
  void hit() {
    value.assign(plan.value_bytes, '\0');
    egret::bench::write_value(value.data(), value.size(), node.taken.front().key_number, kLoadedVersion);
    node.answer(Outcome::kHit, value);
  }

  WorkloadSpec spec;
  egret::bench::Keyspace keys{100, 16};
  Plan plan;
  FakeNode node;
  Knowledge knowledge{100, Writers::kOne, true};
  std::string value;
  std::unique_ptr<Driver> driver;
};

}  // namespace

TEST_CASE("closed: the window is filled, and each answer lets one op in") {
  Bench bench({.keys = 100});
  CHECK(bench.driver->step());
  CHECK(bench.node.taken.size() == 4);
  CHECK(!bench.driver->step());
  bench.hit();
  CHECK(bench.driver->step());
  CHECK(bench.node.taken.size() == 4);
  CHECK(bench.driver->tally().hits == 1);
  CHECK(bench.driver->tally().wrong() == 0);
  CHECK(bench.driver->tally().unanswered == 4);
}

TEST_CASE("closed: latency counts from the op's begin to the poll that brings its answer") {
  Bench bench({.keys = 100}, {}, 1);
  bench.driver->begin_round();
  bench.driver->step();
  g_now += 250;
  bench.hit();
  bench.driver->step();
  CHECK(bench.driver->tally().latency.max() == 250);
  CHECK(bench.driver->tally().measured_ops == 1);
}

TEST_CASE("only what is answered within the round is measured; everything is judged and counted") {
  Bench bench({.keys = 100}, {}, 1);
  bench.driver->step();
  bench.hit();
  bench.driver->step();
  bench.driver->begin_round();
  bench.hit();
  bench.driver->step();
  bench.driver->end_round();
  bench.node.answer(Outcome::kMiss);
  bench.driver->step();
  CHECK(bench.driver->tally().measured_ops == 1);
  CHECK(bench.driver->tally().ops == 3);
  CHECK(bench.driver->tally().wrong() == 1);
  CHECK(bench.driver->tally().first_wrong == Fault::kMissed);
}

TEST_CASE("open: ops are begun when they are due, however many are under way") {
  Bench bench({.keys = 100}, {.rate = 1e7});  // one every 100 ns
  bench.driver->step();
  CHECK(bench.node.taken.size() == 1);
  g_now += 99;
  bench.driver->step();
  CHECK(bench.node.taken.size() == 1);
  g_now += 1;
  bench.driver->step();
  CHECK(bench.node.taken.size() == 2);
  g_now += 150;
  bench.driver->step();
  CHECK(bench.node.taken.size() == 3);
}

TEST_CASE("open: latency counts from the due time, though the window held the op back") {
  Bench bench({.keys = 100}, {.rate = 1e7}, 1);
  bench.driver->begin_round();
  bench.driver->step();  // the first, due at once
  g_now += 1000;         // the second is due 100 later, and waits
  bench.hit();
  bench.driver->step();
  CHECK(bench.driver->tally().latency.max() == 1000);
  g_now += 500;
  bench.hit();
  bench.driver->step();
  CHECK(bench.driver->tally().latency.max() == 1400);
}

TEST_CASE("a rate is dealt over the clients, whose due times are spread") {
  Plan plan;
  plan.clients = 4;
  const Pace first = pace_of(plan, {.rate = 1e7}, 0, 5000);
  const Pace third = pace_of(plan, {.rate = 1e7}, 2, 5000);
  CHECK(first.interval_ns == 400);
  CHECK(first.first_due_ns == 5000);
  CHECK(third.first_due_ns == 5200);
}

TEST_CASE("so many ops are begun and no more; shares add up") {
  Bench bench({.keys = 100}, {.rate = 0, .ops = 6});
  for (int i = 0; i < 20; ++i) {
    bench.driver->step();
    if (!bench.node.taken.empty()) bench.hit();
  }
  bench.driver->step();
  CHECK(bench.driver->tally().ops == 6);
  CHECK(bench.driver->is_finished());
  CHECK(share_of(10, 4, 0) + share_of(10, 4, 1) + share_of(10, 4, 2) + share_of(10, 4, 3) == 10);
}

TEST_CASE("an op that the node does not take is begun later, and is not another") {
  Bench bench({.keys = 100});
  bench.node.room = 0;
  CHECK(!bench.driver->step());
  bench.node.room = 64;
  bench.driver->step();
  Workload same(bench.spec, 0);
  for (const Op& op : bench.node.taken) CHECK(op.key_number == same.draw().key);
}

TEST_CASE("no key is written twice at the same time, and each put has a newer version") {
  Bench bench({.keys = 3, .gets = 0}, {}, 8);
  bench.driver->step();
  REQUIRE(bench.node.taken.size() == 3);
  for (size_t i = 1; i < 3; ++i) CHECK(bench.node.taken[i].key_number != bench.node.taken[0].key_number);
  for (int i = 0; i < 3; ++i) bench.node.answer(Outcome::kDone);
  bench.driver->step();
  CHECK(bench.node.taken.size() == 3);
  CHECK(bench.node.values[0].substr(8, 8) != bench.node.values[3].substr(8, 8));
  CHECK(bench.driver->tally().done == 3);
}

TEST_CASE("an answer that nobody waits for, and a second one to the same op, are wrong") {
  Bench bench({.keys = 100}, {}, 1);
  bench.driver->step();
  const Op op = bench.node.taken.front();
  bench.hit();
  bench.driver->step();  // the place has its next op
  bench.node.answers.push_back({op.ticket, Outcome::kLost, {}});
  bench.node.answers.push_back({77, Outcome::kLost, {}});
  bench.driver->step();
  CHECK(bench.driver->tally().faults[static_cast<size_t>(Fault::kUnasked)] == 2);
  CHECK(bench.driver->tally().ops == 1);
  CHECK(bench.driver->tally().unanswered == 1);
}

TEST_CASE("lost and failed ops are counted, but are no ops of the rate") {
  Bench bench({.keys = 100}, {}, 2);
  bench.driver->begin_round();
  bench.driver->step();
  bench.node.answer(Outcome::kLost);
  bench.node.answer(Outcome::kFailed);
  bench.driver->step();
  CHECK(bench.driver->tally().lost == 1);
  CHECK(bench.driver->tally().failed == 1);
  CHECK(bench.driver->tally().measured_ops == 0);
}

TEST_CASE("drained: nothing more is begun, and what is under way is answered") {
  Bench bench({.keys = 100});
  bench.driver->step();
  bench.driver->drain();
  CHECK(!bench.driver->is_finished());
  for (int i = 0; i < 4; ++i) {
    bench.hit();
    bench.driver->step();
  }
  CHECK(bench.driver->is_finished());
  CHECK(bench.node.taken.empty());
}
