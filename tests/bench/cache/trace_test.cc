#include "bench_cache/trace.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

using namespace egret::bench_cache;

namespace {

constexpr uint32_t kKeys = 10'000;
constexpr uint64_t kSeed = 7;

std::vector<Request> requests_of(Trace trace, size_t count) {
  std::vector<Request> requests;
  while (requests.size() < count) requests.push_back(trace.next());
  return requests;
}

bool is_same(const Request& a, const Request& b) {
  return a.key == b.key && a.is_overwrite == b.is_overwrite && a.is_scan == b.is_scan;
}

double share_of(const std::vector<Request>& requests, auto&& predicate) {
  return static_cast<double>(std::count_if(requests.begin(), requests.end(), predicate)) /
         static_cast<double>(requests.size());
}

}  // namespace

TEST_CASE("a seed replays a trace, and another seed gives another one") {
  for (const Mix& mix : all_mixes()) {
    CAPTURE(mix.name);
    const auto requests = requests_of(Trace(mix, kKeys, kSeed, 1), 1000);
    const auto again = requests_of(Trace(mix, kKeys, kSeed, 1), 1000);
    const auto other = requests_of(Trace(mix, kKeys, kSeed + 1, 1), 1000);
    CHECK(std::equal(requests.begin(), requests.end(), again.begin(), is_same));
    CHECK_FALSE(std::equal(requests.begin(), requests.end(), other.begin(), is_same));
  }
}

TEST_CASE("the mixes differ in exponent, sizes, lifetimes and scans, and each name is there once") {
  const auto mixes = all_mixes();
  CHECK(mixes.size() == 12);
  for (size_t i = 0; i < mixes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK(mixes[i].name != mixes[j].name);
  }
}

TEST_CASE("keys are drawn by their rank's popularity") {
  const Mix mix{.name = "", .zipf = 0.99};
  const auto requests = requests_of(Trace(mix, kKeys, kSeed, 1), 200'000);
  double sum = 0;
  for (uint32_t rank = 1; rank <= kKeys; ++rank) sum += std::pow(rank, -0.99);
  for (const uint32_t key : {0u, 1u, 9u}) {
    const double expected = std::pow(key + 1, -0.99) / sum;
    CHECK(share_of(requests, [key](auto& each) { return each.key == key; }) == doctest::Approx(expected).epsilon(0.1));
  }
  CHECK(share_of(requests, [](auto& each) { return each.key >= kKeys; }) == 0);
}

TEST_CASE("a tenth of the drawn requests overwrite") {
  const auto requests = requests_of(Trace({.name = ""}, kKeys, kSeed, 1), 100'000);
  CHECK(share_of(requests, [](auto& each) { return each.is_overwrite; }) == doctest::Approx(0.1).epsilon(0.05));
  CHECK(share_of(requests, [](auto& each) { return each.is_scan; }) == 0);
}

TEST_CASE("a scan gets the cold nine tenths of the keys, one after another, round and round") {
  const auto requests = requests_of(Trace({.name = "", .scan_share = 0.2}, 100, kSeed, 1), 10'000);
  CHECK(share_of(requests, [](auto& each) { return each.is_scan; }) == doctest::Approx(0.2).epsilon(0.1));
  uint32_t expected = 10;
  for (const Request& request : requests) {
    if (!request.is_scan) continue;
    CHECK_FALSE(request.is_overwrite);
    REQUIRE(request.key == expected);
    expected = expected == 99 ? 10 : expected + 1;
  }
}

TEST_CASE("values are all small, or lognormal around 200 bytes within their bounds") {
  const Trace small({.name = ""}, kKeys, kSeed, 1);
  CHECK(small.value_size(17) == kSmallSize);
  const Trace trace({.name = "", .lognormal = true}, kKeys, kSeed, 1);
  std::vector<uint32_t> sizes;
  for (uint32_t key = 0; key < kKeys; ++key) sizes.push_back(trace.value_size(key));
  std::sort(sizes.begin(), sizes.end());
  CHECK(sizes.front() >= kMinSize);
  CHECK(sizes.back() <= kMaxSize);
  CHECK(sizes[kKeys / 2] == doctest::Approx(kMedianSize).epsilon(0.05));
  // One sigma to either side.
  CHECK(sizes[kKeys * 84 / 100] == doctest::Approx(kMedianSize * std::exp(kSizeSigma)).epsilon(0.1));
  CHECK(sizes[kKeys * 16 / 100] == doctest::Approx(kMedianSize / std::exp(kSizeSigma)).epsilon(0.1));
}

TEST_CASE("lifetimes are log-uniform from 20 s to an hour, scaled, and never 0, which would be for good") {
  CHECK(Trace({.name = ""}, kKeys, kSeed, 1).ttl_s(3) == 0);
  for (const double scale : {1.0, 0.1, 0.001}) {
    const Trace trace({.name = "", .expires = true}, kKeys, kSeed, scale);
    std::vector<uint32_t> ttls;
    for (uint32_t key = 0; key < kKeys; ++key) ttls.push_back(trace.ttl_s(key));
    std::sort(ttls.begin(), ttls.end());
    CHECK(ttls.front() == std::max(1.0, std::round(20 * scale)));
    CHECK(ttls.back() <= std::max(1.0, std::round(3600 * scale)));
    if (scale >= 0.1) CHECK(ttls[kKeys / 2] == doctest::Approx(std::sqrt(20 * 3600) * scale).epsilon(0.1));
  }
}

TEST_CASE("a footprint is what memcached's chunks come to, or keys and values alone") {
  CHECK(memcached_chunk(16, 32) == 120);     // 107 bytes
  CHECK(memcached_chunk(16, 1024) == 1184);  // 1099
  CHECK(memcached_chunk(16, 5) == 96);
  const uint64_t wanted = uint64_t{640} << 20;
  const Mix small{.name = ""};
  CHECK(keys_for_footprint(small, Footprint::kChunks, wanted, kSeed) == wanted / 120);
  CHECK(keys_for_footprint(small, Footprint::kData, wanted, kSeed) == wanted / 48);
  CHECK(keys_for_footprint(small, Footprint::kData, 0, kSeed) == 1);
  const Mix lognormal{.name = "", .lognormal = true};
  for (const Footprint footprint : {Footprint::kChunks, Footprint::kData}) {
    const uint32_t keys = keys_for_footprint(lognormal, footprint, wanted, kSeed);
    CHECK(static_cast<double>(Trace(lognormal, keys, kSeed + 1, 1).footprint_bytes(footprint)) ==
          doctest::Approx(static_cast<double>(wanted)).epsilon(0.01));
  }
}
