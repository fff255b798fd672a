#include "bench/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "bench/sampler.h"

using egret::bench::Histogram;

TEST_CASE("buckets follow one another without a gap, and are at most 1/128 of their values wide") {
  for (size_t bucket = 0; bucket + 1 < 4000; ++bucket) {
    const uint64_t begin = Histogram::bucket_begin(bucket);
    const uint64_t next = Histogram::bucket_begin(bucket + 1);
    REQUIRE(begin < next);
    REQUIRE(Histogram::bucket_of(begin) == bucket);
    REQUIRE(Histogram::bucket_of(next - 1) == bucket);
    if (bucket >= 256) REQUIRE((next - begin) * 128 <= begin);
  }
}

TEST_CASE("a quantile is within the documented error of the exact one") {
  egret::bench::Rng rng(7);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 50'000; ++i) {
    values.push_back(static_cast<uint64_t>(std::exp(rng.unit() * 20)));  // 1 ns to half a second, log-uniform
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    const auto exact = static_cast<double>(values[rank - 1]);
    const auto found = static_cast<double>(histogram.quantile(share));
    CHECK(std::fabs(found - exact) <= exact * Histogram::kRelativeError);
  }
  CHECK(histogram.max() == values.back());
  CHECK(histogram.quantile(1) <= values.back());
}

TEST_CASE("the ends: nothing recorded, one value, zero, and values beyond the largest") {
  Histogram histogram;
  CHECK(histogram.quantile(0.5) == 0);
  CHECK(histogram.mean() == 0);
  histogram.record(0);
  CHECK(histogram.quantile(1) == 0);
  histogram.record(~0ULL >> 1);
  CHECK(histogram.count() == 2);
  CHECK(histogram.quantile(0.5) == 0);
  CHECK(histogram.quantile(1) > Histogram::kMaxValue / 2);
}

TEST_CASE("merging is recording both; clearing forgets") {
  Histogram one;
  Histogram two;
  for (uint64_t i = 1; i <= 100; ++i) (i % 2 == 0 ? one : two).record(i);
  one.merge(two);
  CHECK(one.count() == 100);
  CHECK(one.quantile(0.5) == 50);
  CHECK(one.quantile(0.99) == 99);
  CHECK(one.mean() == doctest::Approx(50.5));
  one.clear();
  CHECK(one.count() == 0);
  CHECK(one.max() == 0);
}
