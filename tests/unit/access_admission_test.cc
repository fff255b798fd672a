// How many newcomers are let in at once, and when the others are asked to come back.
#include <set>

#include <doctest/doctest.h>

#include "access/admission.h"

using namespace egret::access;

namespace {
constexpr uint64_t kMs = 1'000'000;

Admission with_cost(uint64_t accept_ns, uint64_t grant_ns) {
  Admission admission;
  for (int i = 0; i < 100; ++i) {
    admission.accepted({.control_ns = accept_ns});
    admission.granted({.control_ns = grant_ns});
  }
  return admission;
}
}  // namespace

TEST_CASE("few at once are let in, whatever a session costs") {
  for (const uint64_t cost : {uint64_t{1}, 100'000UL, 3 * kMs, 1000 * kMs}) {
    Admission admission = with_cost(cost, cost);
    for (size_t under_way = 0; under_way < Admission::kLeastUnderWay; ++under_way) {
      CHECK(admission.come_back_ms(1, under_way, false) == 0);
    }
    CHECK(admission.come_back_ms(1, Admission::kMostUnderWay, false) > 0);
    CHECK(admission.come_back_ms(1, Admission::kMostUnderWay, true) == 0);
    CHECK(admission.come_back_ms(1, Admission::kMostWithReturners, true) > 0);
    CHECK(admission.come_back_ms(1, Admission::kMostAcceptedWithReturners, true, true) > 0);
  }
}

TEST_CASE("the others come back one after the other, each after the cost of a session and an eighth") {
  Admission admission = with_cost(4 * kMs, 4 * kMs);
  const uint32_t first = admission.come_back_ms(0, 10, false);
  CHECK(first == 60 + 11 * 9);  // after the ten that are under way, and its own
  for (uint32_t later = 1; later <= 100; ++later) CHECK(admission.come_back_ms(0, 10, false) == first + later * 9);
}

TEST_CASE("moments that have passed are nobody's") {
  Admission admission = with_cost(4 * kMs, 4 * kMs);
  for (int i = 0; i < 100; ++i) CHECK(admission.come_back_ms(0, 10, false) > 0);
  CHECK(admission.come_back_ms(5000 * kMs, 10, false) == 60 + 11 * 9);
  CHECK(admission.come_back_ms(5000 * kMs, 0, false) == 0);
}

TEST_CASE("moments that were given to others keep nobody out while few are under way") {
  Admission admission = with_cost(4 * kMs, 4 * kMs);
  for (int i = 0; i < 1000; ++i) CHECK(admission.come_back_ms(0, 10, false) > 0);
  CHECK(admission.come_back_ms(1, 0, false) == 0);
}

TEST_CASE("those whose moments lie within 20 ms, who come at once, may all be under way, however quick sessions are") {
  Admission admission = with_cost(1, 1);
  int within = 0;
  const uint32_t first = admission.come_back_ms(0, Admission::kMostUnderWay, false);
  while (admission.come_back_ms(0, Admission::kMostUnderWay, false) < first + 20) ++within;
  CHECK(within > 10);
  CHECK(within < static_cast<int>(Admission::kMostWithReturners));
}

TEST_CASE("no pause is longer than the longest, and the last ones do not come at one moment") {
  Admission admission = with_cost(1000 * kMs, 1000 * kMs);
  std::set<uint32_t> pauses;
  uint32_t longest = 0;
  for (int i = 0; i < 4000; ++i) {
    const uint32_t pause = admission.come_back_ms(0, 30, false);
    longest = std::max(longest, pause);
    pauses.insert(pause);
  }
  CHECK(longest <= Admission::kLongestPauseMs);
  CHECK(pauses.size() > 600);
}

TEST_CASE("before it is known what granting costs, a session is taken to cost twice what accepting it does") {
  Admission admission;
  for (int i = 0; i < 2; ++i) admission.accepted({.control_ns = 3 * kMs});
  CHECK(admission.session_ns() == 6 * kMs);
  for (int i = 0; i < 2; ++i) admission.granted({.control_ns = kMs});
  CHECK(admission.session_ns() == 4 * kMs);
}

TEST_CASE(
    "the pace is that of the slower one of the control thread and the set-up threads, which work beside each other") {
  Admission admission;
  for (int i = 0; i < 100; ++i) {
    admission.accepted({.control_ns = kMs / 10, .setup_ns = kMs});
    admission.granted({.control_ns = kMs / 10, .setup_ns = 2 * kMs});
  }
  CHECK(admission.session_ns() == 3 * kMs);
  for (int i = 0; i < 100; ++i) admission.granted({.control_ns = 5 * kMs, .setup_ns = kMs});
  CHECK(admission.session_ns() > 5 * kMs);
  CHECK(admission.session_ns() < 6 * kMs);
}

TEST_CASE("a first session that is slow keeps nobody out who comes next") {
  Admission admission;
  const uint64_t unknown = admission.session_ns();
  admission.accepted({.control_ns = 2 * kMs});
  admission.granted({.control_ns = 2 * kMs, .setup_ns = 2 * kMs});
  CHECK(admission.session_ns() == unknown);
  for (size_t under_way = 0; under_way < 16; ++under_way) {
    CHECK(admission.come_back_ms(0, under_way, false, true) == 0);
  }
}

TEST_CASE("thirty quick ones at once are let in once their connections are made") {
  Admission fresh;
  CHECK(fresh.come_back_ms(0, 29, false, true) == 0);
  CHECK(fresh.come_back_ms(0, 30, false, true) > 0);
  Admission quick = with_cost(20'000, 150'000);
  CHECK(quick.come_back_ms(0, 29, false, true) == 0);
  Admission slow = with_cost(3 * kMs, 3 * kMs);
  CHECK(slow.come_back_ms(0, 29, false, true) > 0);
}
