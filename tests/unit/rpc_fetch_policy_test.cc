// When a lane fetches and when it waits to be told; how much it fetches.
#include <initializer_list>

#include <doctest/doctest.h>

#include "rpc/fetch_policy.h"

using namespace egret::rpc;
using Mode = FetchPolicy::Mode;

namespace {

constexpr uint64_t kShort = 1'000, kLong = 50'000;

struct Policy : FetchPolicy {
  explicit Policy(const FetchOptions& options = {}) : FetchPolicy(options) {}
  void responses(int count, uint32_t refetches, uint64_t processing_ns) {
    for (int i = 0; i < count; ++i) on_response(refetches, processing_ns, 100);
  }
  // Into reply mode and out of it again; how many short responses the way out took.
  int round_trip() {
    responses(2, 6, kLong);
    REQUIRE(mode() == Mode::kReply);
    int taken = 0;
    for (; mode() == Mode::kReply && taken < 1 << 20; ++taken) responses(1, 0, kShort);
    return taken;
  }
};

}  // namespace

TEST_CASE("a lane begins by fetching") {
  CHECK(Policy().mode() == Mode::kFetch);
}

TEST_CASE("two messages in a row with more than R refetches lead to server reply") {
  Policy policy;
  policy.responses(1, 6, kLong);
  CHECK(policy.mode() == Mode::kFetch);
  policy.responses(1, 6, kLong);
  CHECK(policy.mode() == Mode::kReply);
}

TEST_CASE("R is what it is set to, none included") {
  for (const uint32_t limit : {0u, 1u, 30u}) {
    Policy policy({.max_refetches = limit});
    policy.responses(50, limit, kLong);
    CHECK(policy.mode() == Mode::kFetch);
    policy.responses(2, limit + 1, kLong);
    CHECK(policy.mode() == Mode::kReply);
  }
}

TEST_CASE("set to fetch, a lane never goes over to server reply, however often it fetches in vain") {
  Policy policy({.mode = FetchMode::kFetch});
  policy.responses(1000, 1000, kLong);
  CHECK(policy.mode() == Mode::kFetch);
}

TEST_CASE("set to server reply, a lane begins with it and never fetches, however short processing is") {
  Policy policy({.mode = FetchMode::kReply});
  CHECK(policy.mode() == Mode::kReply);
  policy.responses(1 << 17, 0, 0);
  CHECK(policy.mode() == Mode::kReply);
}

TEST_CASE("whatever the mode, the fetch size is learned") {
  for (const FetchMode mode : {FetchMode::kAuto, FetchMode::kFetch, FetchMode::kReply}) {
    Policy policy({.mode = mode, .min_fetch = 64, .max_fetch = 4096});
    CHECK(policy.fetch_size() == 64);
    for (int i = 0; i < 20; ++i) policy.on_response(9, kLong, 2000);
    CHECK(policy.fetch_size() == 2304);  // an eighth more, in whole lines
  }
}

TEST_CASE("slow messages that are not in a row, or need just R refetches, do not") {
  Policy policy;
  for (int i = 0; i < 50; ++i) {
    policy.responses(1, 6, kLong);
    policy.responses(1, 5, kLong);
  }
  policy.responses(50, 5, kLong);
  CHECK(policy.mode() == Mode::kFetch);
}

TEST_CASE("short processing leads back to fetching, once it has been short for a while") {
  Policy policy;
  policy.responses(2, 6, kLong);
  policy.responses(63, 0, kShort);
  CHECK(policy.mode() == Mode::kReply);
  policy.responses(1, 0, kLong);  // begins the while anew
  policy.responses(63, 0, kShort);
  CHECK(policy.mode() == Mode::kReply);
  policy.responses(1, 0, kShort);
  CHECK(policy.mode() == Mode::kFetch);
}

TEST_CASE("processing as long as fetching has no advantage keeps server reply") {
  Policy policy;
  policy.responses(2, 6, kLong);
  policy.responses(1000, 0, FetchOptions{}.short_processing_ns);
  CHECK(policy.mode() == Mode::kReply);
}

TEST_CASE(
    "each return that was a mistake doubles the number of short responses needed, up to a limit; one that lasts resets "
    "it") {
  Policy policy;
  policy.responses(100, 0, kShort);
  int last = policy.round_trip();
  CHECK(last == 64);
  for (int i = 0; i < 10; ++i) {
    const int next = policy.round_trip();
    CHECK(next == last * 2);
    last = next;
  }
  CHECK(last == 1 << 16);
  CHECK(policy.round_trip() == 1 << 16);
  policy.responses(1 << 16, 0, kShort);  // fetching was right for long
  CHECK(policy.round_trip() == 64);
}

TEST_CASE("the fetch size follows what responses take, between its bounds") {
  Policy policy;
  CHECK(policy.fetch_size() == FetchOptions{}.min_fetch);
  for (int i = 0; i < 10; ++i) policy.on_response(0, kShort, 600);
  CHECK(policy.fetch_size() >= 600);
  CHECK(policy.fetch_size() <= 704);
  policy.on_response(0, kShort, 100);  // one small one hardly shrinks it
  CHECK(policy.fetch_size() > 500);
  for (int i = 0; i < 10; ++i) policy.on_response(0, kShort, 60'000);
  CHECK(policy.fetch_size() >= 60'000);
  CHECK(policy.fetch_size() <= FetchOptions{}.max_fetch);
  for (int i = 0; i < 1000; ++i) policy.on_response(0, kShort, 40);
  CHECK(policy.fetch_size() == FetchOptions{}.min_fetch);
}

TEST_CASE("the value size to expect follows the values seen") {
  Policy policy;
  CHECK(policy.expected_value() == 0);
  for (int i = 0; i < 12; ++i) policy.on_value(1000);
  CHECK(policy.expected_value() >= 990);
  CHECK(policy.expected_value() <= 1000);
}

TEST_CASE("the delay before the first fetch stays within its bounds, whatever is reported, and recovers") {
  Policy policy;
  for (int i = 0; i < 10'000; ++i) policy.on_first_fetch(UINT32_MAX, UINT64_MAX);
  CHECK(policy.first_fetch_ns() == 1'000'000);
  int messages = 0;
  for (; policy.first_fetch_ns() > 1'000 && messages < 10'000; ++messages) policy.on_first_fetch(0, 0);
  CHECK(messages < 300);
  for (int i = 0; i < 10'000; ++i) policy.on_first_fetch(0, 0);
  CHECK(policy.first_fetch_ns() == 0);
  policy.on_first_fetch(1, 0);
  CHECK(policy.first_fetch_ns() > 0);
}

TEST_CASE("service that has become a hundred times longer is followed within a few messages") {
  Policy policy;
  for (int i = 0; i < 100; ++i) policy.on_first_fetch(policy.first_fetch_ns() < 1'000 ? 1 : 0, 900);
  int messages = 0;
  for (; policy.first_fetch_ns() < 100'000 && messages < 1'000; ++messages) policy.on_first_fetch(3, 90'000);
  CHECK(messages < 20);
}
