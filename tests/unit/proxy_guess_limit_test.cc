// How fast passwords may be guessed.
#include <string>

#include <doctest/doctest.h>

#include "proxy/users/guess_limit.h"

namespace {

using egret::proxy::GuessBucket;
using egret::proxy::GuessLimit;
using egret::proxy::GuessPace;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr GuessPace kPace{.burst = 3, .interval_ns = kSecond};

}  // namespace

TEST_CASE("a bucket gives a burst, then one an interval") {
  GuessBucket bucket;
  const uint64_t start = 1000 * kSecond;
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(start, kPace) == 0);
  CHECK(bucket.take(start, kPace) == kSecond);
  CHECK(bucket.take(start + kSecond / 4, kPace) == kSecond - kSecond / 4);
  CHECK(bucket.take(start + kSecond, kPace) == 0);
  CHECK(bucket.take(start + kSecond, kPace) == kSecond);
  // Whoever has waited for long has the burst again, and no more.
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(start + 1000 * kSecond, kPace) == 0);
  CHECK(bucket.take(start + 1000 * kSecond, kPace) == kSecond);
}

TEST_CASE("what is given back can be taken again, and no more than the burst") {
  GuessBucket bucket;
  for (int i = 0; i < 100; ++i) {
    CHECK(bucket.take(kSecond, kPace) == 0);
    bucket.give_back(kPace);
  }
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(kSecond, kPace) == 0);
  CHECK(bucket.take(kSecond, kPace) > 0);
  GuessBucket fresh;
  for (int i = 0; i < 100; ++i) fresh.give_back(kPace);
  for (int i = 0; i < 3; ++i) CHECK(fresh.take(kSecond, kPace) == 0);
  CHECK(fresh.take(kSecond, kPace) > 0);
}

TEST_CASE("a bucket that was emptied at a slow pace fills at the present one") {
  GuessBucket bucket;
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(kSecond, {.burst = 3, .interval_ns = 3600 * kSecond}) == 0);
  CHECK(bucket.take(kSecond, kPace) == kSecond);
  CHECK(bucket.take(2 * kSecond, kPace) == 0);
  CHECK(bucket.take(2 * kSecond, kPace) == kSecond);
}

TEST_CASE("a user and an address have a bucket of their own") {
  GuessLimit limit;
  for (int i = 0; i < 3; ++i) CHECK(limit.take("anna", "10.0.0.1", 0, kPace) == 0);
  CHECK(limit.take("anna", "10.0.0.1", 0, kPace) > 0);
  CHECK(limit.take("bert", "10.0.0.1", 0, kPace) == 0);
  CHECK(limit.take("anna", "10.0.0.2", 0, kPace) == 0);
  CHECK(limit.take("anna1", "0.0.0.1", 0, kPace) == 0);  // the same bytes, parted otherwise
  limit.give_back("anna", "10.0.0.1", kPace);
  CHECK(limit.take("anna", "10.0.0.1", 0, kPace) == 0);
}

TEST_CASE("users and addresses beyond count push nobody's bucket out") {
  GuessLimit limit;
  for (int i = 0; i < 3; ++i) CHECK(limit.take("anna", "10.0.0.1", 0, kPace) == 0);
  for (int i = 0; i < 100'000; ++i) limit.take("user" + std::to_string(i), "10.0.0.1", 0, kPace);
  CHECK(limit.take("anna", "10.0.0.1", 0, kPace) > 0);
}
