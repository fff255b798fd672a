#include "bench/sampler.h"

#include <cmath>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "bench/request_mix.h"

using namespace egret::bench;

namespace {

// Draws and compares each rank's frequency with its probability: no further off than 5 standard deviations.
void check_frequencies(uint32_t count, double exponent, int draws) {
  Rng rng(42);
  const ZipfSampler zipf(count, exponent);
  std::vector<int> seen(count);
  for (int i = 0; i < draws; ++i) {
    const uint32_t rank = zipf.sample(rng);
    REQUIRE(rank < count);
    ++seen[rank];
  }
  double norm = 0;
  for (uint32_t rank = 0; rank < count; ++rank) norm += std::pow(rank + 1, -exponent);
  double chi_square = 0;
  for (uint32_t rank = 0; rank < count; ++rank) {
    const double expected = draws * std::pow(rank + 1, -exponent) / norm;
    const double deviation = seen[rank] - expected;
    if (rank < 10) CHECK(std::fabs(deviation) < 5 * std::sqrt(expected) + 1);
    chi_square += deviation * deviation / expected;
  }
  CHECK(chi_square < count + 6 * std::sqrt(2.0 * count));
}

}  // namespace

TEST_CASE("Zipf frequencies are those of the definition") {
  check_frequencies(1000, 0.99, 1'000'000);
  check_frequencies(100, 1.0, 300'000);
  check_frequencies(50, 1.5, 300'000);
  check_frequencies(100, 0.5, 300'000);
}

TEST_CASE("Zipf over one rank, and over very many, stays in range") {
  Rng rng(1);
  CHECK(ZipfSampler(1, 0.99).sample(rng) == 0);
  const ZipfSampler many(4'000'000'000U, 0.99);
  for (int i = 0; i < 10'000; ++i) REQUIRE(many.sample(rng) < 4'000'000'000U);
}

TEST_CASE("uniform numbers cover their range evenly") {
  Rng rng(3);
  std::vector<int> seen(16);
  for (int i = 0; i < 160'000; ++i) ++seen[rng.below(16)];
  for (const int each : seen) CHECK(std::abs(each - 10'000) < 500);
}

TEST_CASE("the mix keeps its read share, replays by its seed, and never repeats a version") {
  LoadSpec spec;
  spec.read_share = 0.9;
  spec.keys = 1000;
  spec.zipf = 0.99;
  RequestMix mix(spec, 0);
  RequestMix same(spec, 0);
  RequestMix other(spec, 1);
  int gets = 0;
  std::set<uint64_t> versions;
  for (int i = 0; i < 10'000; ++i) {
    const bool is_get = mix.next_is_get();
    gets += is_get ? 1 : 0;
    CHECK(same.next_is_get() == is_get);
    const uint32_t key = mix.next_key();
    REQUIRE(key < 1000);
    CHECK(same.next_key() == key);
    versions.insert(mix.next_version());
    versions.insert(other.next_version());
  }
  CHECK(std::abs(gets - 9000) < 200);
  CHECK(versions.size() == 20'000);
}
