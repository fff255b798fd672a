// Clocks: the system clock never steps back; the manual one shows what it is set to.
#include <ctime>

#include <doctest/doctest.h>

#include "base/clock.h"

using namespace egret::base;

TEST_CASE("the system clock never steps back and agrees with the wall") {
  const SystemClock clock;
  uint64_t last = clock.now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t now = clock.now_ns();
    REQUIRE(now >= last);
    last = now;
  }
  const auto wall = static_cast<int64_t>(std::time(nullptr));
  CHECK(clock.unix_seconds() >= wall - 1);
  CHECK(clock.unix_seconds() <= wall + 1);
}

TEST_CASE("the manual clock moves only when it is set, and both its times move together") {
  ManualClock clock(1000);
  const uint64_t start = clock.now_ns();
  CHECK(clock.unix_seconds() == 1000);
  clock.advance_seconds(5);
  CHECK(clock.now_ns() - start == 5'000'000'000);
  CHECK(clock.unix_seconds() == 1005);
  clock.advance_ns(999'999'998);
  CHECK(clock.unix_seconds() == 1005);
  clock.advance_ns(1);
  CHECK(clock.unix_seconds() == 1006);
}
