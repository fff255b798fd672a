// What decides how a lane waits: whether pushing is cheap for the server, whether its lane sleeps, whether pushes bring
// results so much earlier than fetches do.
#include <doctest/doctest.h>

#include "rpc/waiting/lane_sleep.h"
#include "rpc/waiting/push_gain.h"
#include "rpc/waiting/push_load.h"

using namespace egret::rpc;

namespace {

constexpr uint64_t kMs = 1'000'000, kUs = 1'000;

// A partition that works so many percent of its time.
struct Worked {
  PushLoad load;
  uint64_t now_ns = 1'000 * kMs;
  bool at(uint32_t percent, size_t sessions = 1, uint64_t for_ms = 50) {
    for (uint64_t i = 0; i < for_ms * 10; ++i, now_ns += 100 * kUs)
      load.worked(now_ns, now_ns + percent * kUs, sessions);
    return load.is_cheap();
  }
};

}  // namespace

TEST_CASE("pushing is cheap while the load is below the limit, and a little above it until it is dear again") {
  Worked partition;
  partition.load.set_rules({.below_load = 30});
  CHECK(!partition.at(50));
  CHECK(!partition.at(31));
  CHECK(partition.at(28));
  CHECK(partition.at(43));
  CHECK(!partition.at(47));
  CHECK(!partition.at(43));
  partition.now_ns += 500 * kMs;  // it slept
  CHECK(partition.at(90, 1, 1));
  partition.load.set_rules({.below_load = 0});
  CHECK(!partition.at(1));
}

TEST_CASE("the load is counted anew from when somebody is told of it") {
  Worked partition;
  partition.load.set_rules({.below_load = 30});
  CHECK(partition.at(0));
  partition.load.begin(partition.now_ns);
  CHECK_FALSE(partition.load.is_cheap());
  CHECK_FALSE(partition.at(90, 1, 10));
  CHECK_FALSE(partition.at(90, 1, 40));
}

TEST_CASE("pushing is cheap with more sessions than the limit, whatever the load; by default never") {
  Worked partition;
  CHECK(!partition.at(0, 10'000));
  partition.load.set_rules({.above_sessions = 512});
  CHECK(!partition.at(99, 512));
  CHECK(partition.at(99, 513));
  CHECK(!partition.at(0, 512));
}

TEST_CASE(
    "a lane is likely to sleep after the shortest pause after which it slept, unless it was awake after longer ones") {
  LaneSleep sleep;
  CHECK(!sleep.is_likely(1, UINT64_MAX - 1));
  sleep.found(0, true);  // no pause: nothing is known of pauses
  CHECK(!sleep.is_likely(1, UINT64_MAX - 1));
  sleep.found(5 * kMs, true);
  CHECK(sleep.is_likely(1, 5 * kMs));
  CHECK(!sleep.is_likely(1, 4 * kMs));
  sleep.found(2 * kMs, true);
  CHECK(sleep.is_likely(1, 2 * kMs));
  sleep.found(kMs, false);
  CHECK(sleep.is_likely(1, 2 * kMs));
  sleep.found(8 * kMs, false);
  CHECK(!sleep.is_likely(1, 8 * kMs));
  CHECK(sleep.is_likely(1, 10 * kMs));
}

TEST_CASE("what a lane was told holds for the message it was told for, at once") {
  LaneSleep sleep;
  sleep.told(7);
  CHECK(sleep.is_likely(7, 0));
  CHECK(!sleep.is_likely(8, 0));
}

TEST_CASE("a lane sleeps rarely until several of the last messages have found it asleep") {
  LaneSleep sleep;
  CHECK(sleep.is_rare());
  int messages = 0;
  for (; sleep.is_rare(); ++messages) sleep.found(kMs, true);
  CHECK(messages >= 2);
  CHECK(messages <= 4);
  for (; !sleep.is_rare(); ++messages) sleep.found(kMs, false);
  CHECK(messages < 100);
}

namespace {

// A lane over a fabric with round trips of 2 µs; service takes the server 1 µs.
struct Gained {
  PushGain gain;
  Gained() {
    for (int i = 0; i < 100; ++i) gain.on_read(2'000);
    fetch(1'000, 3'000);  // it settles
  }
  void fetch(int messages, uint64_t waited_ns, uint32_t refetches = 0) {
    for (int i = 0; i < messages; ++i) gain.on_fetched({waited_ns, refetches}, 1'000);
  }
  void push(int messages, uint64_t waited_ns, PushGain::Fetched as_if) {
    for (int i = 0; i < messages; ++i) gain.on_pushed(waited_ns, 1'000, as_if);
  }
};

}  // namespace

TEST_CASE("results are pushed when fetching brings them more than a sixth later, and long enough so") {
  Gained lane;
  lane.fetch(10'000, 3'400);
  CHECK(!lane.gain.is_pushing());
  lane.fetch(30, 4'500);
  CHECK(!lane.gain.is_pushing());
  lane.fetch(1'000, 4'500);
  CHECK(lane.gain.is_pushing());
}

TEST_CASE("results are pushed when too many fetches look in vain, however early they come") {
  Gained lane;
  for (int i = 0; i < 500; ++i) {
    lane.fetch(9, 3'000);
    lane.fetch(1, 3'000, 1);
  }
  CHECK(!lane.gain.is_pushing());
  for (int i = 0; i < 2'000; ++i) {
    lane.fetch(4, 3'000);
    lane.fetch(1, 3'000, 1);
  }
  CHECK(lane.gain.is_pushing());
}

TEST_CASE(
    "they are fetched again when fetches would bring them as early; each time that was a mistake it takes longer") {
  Gained lane;
  int last = 0;
  for (int round = 0; round < 8; ++round) {
    lane.fetch(3'000, 5'000);
    REQUIRE(lane.gain.is_pushing());
    lane.push(1'000, 3'200, {.waited_ns = 4'500, .refetches = 0});  // still worse
    REQUIRE(lane.gain.is_pushing());
    int messages = 0;
    for (; lane.gain.is_pushing() && messages < 1 << 17; ++messages) lane.push(1, 3'200, {.waited_ns = 3'200});
    CHECK(messages > last);
    last = messages;
  }
  CHECK(last > 64 << 6);
  CHECK(!lane.gain.is_pushing());
  lane.fetch(40'000, 3'200);  // fetching was right for long
  lane.fetch(3'000, 5'000);
  REQUIRE(lane.gain.is_pushing());
  int messages = 0;
  for (; lane.gain.is_pushing() && messages < 1 << 17; ++messages) lane.push(1, 3'200, {.waited_ns = 3'200});
  CHECK(messages < last / 2);
}

TEST_CASE("a lane that begins does not judge before it has learned when to fetch") {
  PushGain gain;
  gain.on_read(2'000);
  for (int i = 0; i < 250; ++i) gain.on_fetched({50'000, 3}, 1'000);
  for (int i = 0; i < 10'000; ++i) gain.on_fetched({3'000, 0}, 1'000);
  CHECK(!gain.is_pushing());
}

TEST_CASE("when a pushed result could have been fetched follows from the shortest READ and the shortest push") {
  PushGain gain;
  CHECK(gain.ready_ns(5'000) == 5'000);
  gain.on_read(2'000);
  CHECK(gain.ready_ns(5'000) == 3'000);
  CHECK(gain.ready_ns(1'000) == 0);
  for (int i = 0; i < 10'000; ++i) gain.on_read(i % 10 == 0 ? 2'000 : 9'000);
  CHECK(gain.trip_ns() < 3'500);
  for (int i = 0; i < 10'000; ++i) gain.on_read(2'000);
  gain.on_pushed(3'200, 1'000, {.waited_ns = 3'200});  // 0.2 µs to post
  CHECK(gain.ready_ns(3'200) >= 990);
  CHECK(gain.ready_ns(3'200) <= 1'010);
}

TEST_CASE("whatever a server says of its processing, and however long anything took, there is a judgement") {
  PushGain gain;
  for (const uint64_t waited : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    for (const uint64_t processing : {uint64_t{0}, uint64_t{UINT32_MAX}, UINT64_MAX}) {
      for (int i = 0; i < 1'000; ++i) {
        gain.on_read(waited);
        gain.on_fetched({waited, UINT32_MAX}, processing);
        gain.on_pushed(waited, processing, {.waited_ns = waited, .refetches = UINT32_MAX});
        CHECK(gain.ready_ns(waited) <= waited);
      }
    }
  }
}
