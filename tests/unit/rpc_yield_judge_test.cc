// When a thread lets others run before it sleeps, when it gives that up, and when it takes it up again.
#include <cstdint>

#include <doctest/doctest.h>

#include "rpc/idle/yield_judge.h"

using egret::rpc::YieldJudge;

namespace {
constexpr uint64_t kNobodyNs = 300, kTurnsNs = 100'000, kSliceNs = 3'000'000;  // what a yield lasts

// Of so many waits in which a yield goes like this, those that begin with one.
uint32_t yields(YieldJudge& judge, uint32_t waits, bool came, uint64_t took_ns) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < waits; ++i) {
    if (!judge.begins()) continue;
    ++count;
    judge.ends(came, took_ns);
  }
  return count;
}
}  // namespace

TEST_CASE("as long as yields bring what is waited for, every wait begins with one") {
  YieldJudge judge;
  CHECK(yields(judge, 1000, true, kTurnsNs) == 1000);
}

TEST_CASE("one yield in four that brings something is enough") {
  YieldJudge judge;
  uint32_t count = 0;
  for (uint32_t i = 0; i < 1000; ++i) count += yields(judge, 1, i % 4 == 0, kTurnsNs);
  CHECK(count == 1000);
}

TEST_CASE("where nobody else wants the CPU, one wait in 256 tries, whatever has come meanwhile") {
  for (const bool came : {true, false}) {
    YieldJudge judge;
    CHECK(yields(judge, 100, came, kNobodyNs) < 25);
    const uint32_t waits = 100 * (YieldJudge::kPassedOver + 1);
    CHECK(yields(judge, waits, came, kNobodyNs) == 100);
  }
}

TEST_CASE("yields are taken up again when they bring something again") {
  YieldJudge judge;
  yields(judge, 10'000, false, kNobodyNs);
  yields(judge, 2 * (YieldJudge::kPassedOver + 1), true, kTurnsNs);
  CHECK(yields(judge, 1000, true, kTurnsNs) == 1000);
}

TEST_CASE("beside threads that compute, ever fewer waits try, whatever a yield brings") {
  for (const bool came : {true, false}) {
    YieldJudge judge;
    CHECK(yields(judge, 100, came, kSliceNs) < 15);
    yields(judge, 10'000, came, kSliceNs);
    CHECK(yields(judge, 10 * (YieldJudge::kMostPassedOver + 1), came, kSliceNs) == 10);
  }
}

TEST_CASE("a time slice now and then ends nothing") {
  YieldJudge judge;
  uint32_t count = 0;
  for (uint32_t i = 0; i < 2000; ++i) count += yields(judge, 1, true, i % 20 == 0 ? kSliceNs : kTurnsNs);
  CHECK(count == 2000);
}

TEST_CASE("when the others have done computing, yields are taken up again within some thousand waits") {
  YieldJudge judge;
  yields(judge, 100'000, true, kSliceNs);
  yields(judge, 3 * (YieldJudge::kMostPassedOver + 1), true, kTurnsNs);
  CHECK(yields(judge, 1000, true, kTurnsNs) == 1000);
}
