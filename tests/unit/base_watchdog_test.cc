// The watchdog, from the supervising thread: beats while all threads answer, and calls of /healthz beside them.
#include <cstdlib>

#include <doctest/doctest.h>

#include "base/service/watchdog.h"

using egret::base::Watchdog;

TEST_CASE("it beats while every thread answers, and stops when one does not") {
  Watchdog watchdog(2);
  CHECK(watchdog.beat());  // nobody has been asked yet
  CHECK_FALSE(watchdog.beat());
  watchdog.answer(0);
  CHECK_FALSE(watchdog.beat());
  watchdog.answer(1);
  CHECK(watchdog.beat());
}

TEST_CASE("a call shows which threads have answered since, and does not disturb the beats") {
  Watchdog watchdog(2);
  REQUIRE(watchdog.beat());
  watchdog.answer(0);
  const uint64_t call = watchdog.call();
  CHECK_FALSE(watchdog.has_answered(0, call));
  watchdog.answer(0);
  CHECK(watchdog.has_answered(0, call));
  CHECK_FALSE(watchdog.has_answered(1, call));
  CHECK_FALSE(watchdog.beat());  // the second has answered nobody
  watchdog.answer(1);
  CHECK(watchdog.beat());
}

TEST_CASE("without threads it always beats") {
  Watchdog watchdog(0);
  CHECK(watchdog.beat());
  CHECK(watchdog.beat());
}
