// Durations in buckets: none is lost, each is where its bound says, and bounds are close enough.
#include <cstdint>
#include <thread>

#include <doctest/doctest.h>

#include "base/histogram.h"

using egret::base::Histogram;

namespace {

uint64_t total(const Histogram& histogram) {
  uint64_t sum = 0;
  for (size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) sum += histogram.count(bucket);
  return sum;
}

}  // namespace

TEST_CASE("a duration is in the bucket between whose bounds it lies") {
  for (size_t bucket = 0; bucket + 1 < Histogram::kBuckets; ++bucket) {
    const uint64_t bound = Histogram::upper_bound(bucket);
    CAPTURE(bound);
    CHECK(Histogram::bucket_of(bound - 1) == bucket);
    CHECK(Histogram::bucket_of(bound) == bucket + 1);
  }
  CHECK(Histogram::bucket_of(0) == 0);
  CHECK(Histogram::bucket_of(UINT64_MAX) == Histogram::kBuckets - 1);
}

TEST_CASE("from 1 us to 60 s two bounds are at most a quarter apart") {
  CHECK(Histogram::upper_bound(0) <= 1100);
  for (size_t bucket = 1; Histogram::upper_bound(bucket - 1) < 60'000'000'000; ++bucket) {
    CHECK(Histogram::upper_bound(bucket) * 4 <= Histogram::upper_bound(bucket - 1) * 5);
  }
}

TEST_CASE("what was recorded is there, and its sum") {
  Histogram histogram;
  for (const uint64_t ns : {uint64_t{0}, uint64_t{1'500}, uint64_t{1'500}, uint64_t{2'000'000'000'000}}) {
    histogram.record(ns);
  }
  CHECK(total(histogram) == 4);
  CHECK(histogram.count(0) == 1);
  CHECK(histogram.count(Histogram::bucket_of(1'500)) == 2);
  CHECK(histogram.count(Histogram::kBuckets - 1) == 1);
  CHECK(histogram.sum_ns() == 2'000'000'003'000);
}

TEST_CASE("a reader never sees a count go down") {
  Histogram histogram;
  std::thread writer([&] {
    for (uint64_t i = 0; i < 200'000; ++i) histogram.record(i);
  });
  uint64_t last = 0;
  while (last < 200'000) {
    const uint64_t now = total(histogram);
    REQUIRE(now >= last);
    last = now;
  }
  writer.join();
}
