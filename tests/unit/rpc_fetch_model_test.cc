// When a lane fetches and when it has results pushed, on a modelled fabric (rpc_fabric_model.h), against service times of
// several kinds and rates from ten messages a second to a million. Results are a model's, not a measurement.
//
// The oracle is a lane whose results are pushed by a server that needs no time for it: each comes as soon as a READ
// could bring it that was staged at the right moment.
#include <cstdio>

#include "rpc_fabric_model.h"

using namespace egret;
using namespace egret::rpc;
using namespace egret::rpc::model;

namespace {

struct Row {
  const char* name;
  Service service;
};
// The service times of the review of the verbs path, and one that does not vary.
const Row kRows[] = {{"constant 0.5", constant(0.5)},
                     {"0.3 + Exp 0.5", exponential(0.3, 0.5)},
                     {"0.3 + Exp 2", exponential(0.3, 2)},
                     {"99 % 0.4, 1 % 50", seldom_long()}};
constexpr double kRates[] = {0, 10, 300, 1e3, 1e4, 1e5, 1e6};

Seen seen(Options options, uint32_t ops = 0) {
  if (ops == 0) ops = options.rate == 0 || options.rate >= 1e4 ? 8'000 : 2'000;
  Model model(std::move(options));
  model.run(3'000);  // it learns
  return model.run(ops);
}

// By Row and rate: what the oracle takes, ns.
double oracle_ns(const Row& row, double rate) {
  return seen({.service = row.service, .rate = rate, .mode = FetchMode::kReply, .post_ns = 0}).mean_ns;
}

}  // namespace

TEST_CASE("a lane waits at most a quarter longer than for READs just in time, with few posts on either side") {
  for (const Row& row : kRows) {
    for (const double rate : kRates) {
      const Seen lane = seen({.service = row.service, .rate = rate});
      const double oracle = oracle_ns(row, rate);
      CAPTURE(row.name);
      CAPTURE(rate);
      CAPTURE(lane.mean_ns);
      CAPTURE(oracle);
      CHECK(lane.mean_ns <= 1.25 * oracle);
      CHECK(lane.vain <= 0.15);
      CHECK(lane.posts <= 2.15);
      // Of those that asked for it each is pushed, and nothing else but, now and then, that the lane sleeps.
      CHECK(lane.server_posts <= lane.asked + 0.04);
      if (lane.asked > 0.99) CHECK(lane.posts <= 1.05);
      if (lane.asked < 0.01) CHECK(lane.server_posts <= 0.01);
    }
  }
}

TEST_CASE("a lane fetches where that is as good, and has results pushed where they come at very different moments") {
  for (const double rate : {0., 1e4, 1e5}) {
    CAPTURE(rate);
    CHECK(seen({.service = constant(0.5), .rate = rate}).asked <= 0.02);
    CHECK(seen({.service = exponential(0.3, 0.5), .rate = rate}).asked >= 0.98);
    CHECK(seen({.service = exponential(0.3, 2), .rate = rate}).asked >= 0.98);
  }
  CHECK(seen({.service = constant(2)}).asked <= 0.02);
  CHECK(seen({.service = seldom_long()}).asked <= 0.1);
}

TEST_CASE("a lane that slept is sent its request as a ring, and answers by a push: one post on either side") {
  for (const Row& row : kRows) {
    const Seen lane = seen({.service = row.service, .rate = 10});
    CAPTURE(row.name);
    CHECK(lane.rang >= 0.97);
    CHECK(lane.asked >= 0.97);
    CHECK(lane.posts <= 1.05);
    CHECK(lane.server_posts <= 1.02);
    // A backend that cannot be asked: WRITE, READ, ring, READ.
    const Seen older = seen({.service = row.service, .rate = 10, .knows_deliver = false});
    CHECK(older.posts >= 3.9);
    CHECK(lane.mean_ns < older.mean_ns);
  }
}

TEST_CASE("while a server says that pushing is cheap, all is pushed; one that is busy is fetched from") {
  const Seen idle = seen({.service = constant(0.5), .rate = 1e5, .push = {.below_load = 30}});
  CHECK(idle.asked >= 0.98);
  CHECK(idle.posts <= 1.02);
  const Seen busy =
      seen({.service = constant(2), .push = {.below_load = 20, .window_ns = 1'000'000}});  // its load is 48 %
  CHECK(busy.asked <= 0.02);
  CHECK(busy.server_posts <= 0.02);
}

TEST_CASE("a lane changes its way seldom, be its service times such that both are about as good") {
  for (const Row& row : kRows) {
    for (const double rate : {0., 1e5}) {
      Model model({.service = row.service, .rate = rate});
      model.run(40'000);
      CAPTURE(row.name);
      CAPTURE(rate);
      CHECK(model.counters().switches_to_reply.get() <= 12);
    }
  }
}

TEST_CASE("when service times change, so does the way, within some thousand messages") {
  bool varies = false;
  const Service short_one = constant(0.5), varying = exponential(0.3, 2);
  Model model({.service = [&](std::mt19937_64& chance) { return varies ? varying(chance) : short_one(chance); }});
  model.run(3'000);
  CHECK(model.run(1'000).asked == 0);
  varies = true;
  model.run(2'000);
  CHECK(model.run(1'000).asked == 1);
  varies = false;
  model.run(8'000);
  CHECK(model.run(1'000).asked == 0);
}

TEST_CASE("from a backend that cannot be asked a lane fetches at most 15 % in vain, one at a time") {
  for (const Row& row : kRows) {
    const Seen lane = seen({.service = row.service, .knows_deliver = false});
    CAPTURE(row.name);
    CHECK(lane.vain <= 0.15);
    CHECK(lane.posts <= 2.15);
    CHECK(lane.server_posts == 0);
  }
}

TEST_CASE("values that fill half a slot cost no second READ once their size is known") {
  CHECK(seen({.service = constant(0.5), .value_bytes = 4000}).posts <= 2.15);
}

// Prints the table of docs/benchmarks/fetch-or-push.md: rpc_fetch_model_test -ns -tc='the table*'. A backend that cannot
// be asked is only fetched from: the model reads want when a round begins, not when it is over.
TEST_CASE("the table of the benchmarks" * doctest::skip()) {
  const auto us = [](const Seen& of) { return of.mean_ns / 1000; };
  for (const Row& row : kRows) {
    for (const double rate : kRates) {
      const double oracle = oracle_ns(row, rate) / 1000;
      const Seen lane = seen({.service = row.service, .rate = rate});
      const Seen fetch = seen({.service = row.service, .rate = rate, .mode = FetchMode::kFetch});
      const Seen push = seen({.service = row.service, .rate = rate, .mode = FetchMode::kReply});
      const Seen older =
          seen({.service = row.service, .rate = rate, .mode = FetchMode::kFetch, .knows_deliver = false});
      std::printf("| %s | %.0f | %.2f | %.2f | %.2f | %.2f | **%.2f** | %.2f | %.0f %% | %.3f | %.2f | %.2f |\n",
                  row.name, rate, oracle, us(older), us(fetch), us(push), us(lane), us(lane) / oracle, 100 * lane.asked,
                  lane.vain, lane.posts, lane.server_posts);
      std::fflush(stdout);
    }
  }
}
