// When a thread lets others run before it sleeps, when it gives that up, and when it takes it up again.
#include <cstdint>

#include <doctest/doctest.h>

#include "rpc/idle/yield_judge.h"

using egret::rpc::YieldJudge;

namespace {
constexpr uint64_t kNobodyNs = 300, kTurnsNs = 120'000, kSliceNs = 3'000'000;  // lengths of yields
constexpr uint64_t kWokenNs = 15'000, kQueuedNs = 300'000;                     // and of sleeps

// What a yield and a sleep last, and that one of so many yields brings the answer.
struct World {
  uint64_t yield_ns, sleep_ns;
  uint32_t comes_in_one_of = 1;
};

// Of so many waits those that begin with a yield.
uint32_t yields(YieldJudge& judge, uint32_t waits, World world) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < waits; ++i) {
    bool came = false;
    if (judge.begins()) {
      came = ++count % world.comes_in_one_of == 0;
      judge.yielded(came, world.yield_ns);
    }
    if (!came) judge.slept(world.sleep_ns);
  }
  return count;
}
}  // namespace

TEST_CASE("who is woken soon never yields, whatever a yield lasts") {
  YieldJudge judge;
  CHECK(yields(judge, 100'000, {kNobodyNs, kWokenNs}) == 0);
  CHECK(yields(judge, 100'000, {kTurnsNs, kWokenNs}) == 0);
}

TEST_CASE("a long sleep now and then does not make it yield") {
  YieldJudge judge;
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE_FALSE(judge.begins());
    judge.slept(i % 50 == 0 ? kSliceNs : kWokenNs);
  }
}

TEST_CASE("where many want the CPU, nearly all waits begin with a yield, and some sleep") {
  YieldJudge judge;
  yields(judge, 1000, {kTurnsNs, kQueuedNs});
  const uint32_t waits = 10 * (YieldJudge::kYields + YieldJudge::kSleeps);
  CHECK(yields(judge, waits, {kTurnsNs, kQueuedNs}) > waits - 20 * YieldJudge::kSleeps);
}

TEST_CASE("that those that sleep now and then are woken soon does not end yields that pay") {
  YieldJudge judge;
  yields(judge, 1000, {kTurnsNs, kQueuedNs});
  CHECK(yields(judge, 10'000, {kTurnsNs, kWokenNs}) > 9'000);
}

TEST_CASE("yields in vain are given up: they cost a sleep besides") {
  YieldJudge judge;
  yields(judge, 10'000, {kNobodyNs, kQueuedNs, 1'000'000});
  CHECK(yields(judge, 100'000, {kNobodyNs, kQueuedNs, 1'000'000}) < 2'000);
}

TEST_CASE("beside threads that compute, yields are given up within some waits, and tried ever more rarely") {
  YieldJudge judge;
  yields(judge, 1000, {kTurnsNs, kQueuedNs});
  CHECK(yields(judge, 100, {kSliceNs, kQueuedNs}) < 10);
  yields(judge, 30'000, {kSliceNs, kQueuedNs});
  CHECK(yields(judge, 10 * YieldJudge::kMostSleeps, {kSliceNs, kQueuedNs}) <= 50);
}

TEST_CASE("when only a few are left, it sleeps again") {
  YieldJudge judge;
  yields(judge, 1000, {kTurnsNs, kQueuedNs});
  yields(judge, 2 * YieldJudge::kYields, {kTurnsNs, kWokenNs});
  CHECK(yields(judge, 100'000, {kTurnsNs, kWokenNs}) == 0);
}

TEST_CASE("when the others have done computing, yields are taken up again") {
  YieldJudge judge;
  yields(judge, 10'000, {kSliceNs, kQueuedNs});
  yields(judge, YieldJudge::kMostSleeps, {kTurnsNs, kQueuedNs});
  CHECK(yields(judge, 10'000, {kTurnsNs, kQueuedNs}) > 9'000);
}
