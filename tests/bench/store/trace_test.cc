#include "bench_store/trace.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace egret;
using namespace egret::bench_store;

TEST_CASE("every number has a key text of its own") {
  std::set<std::string> texts;
  for (uint64_t number = 0; number < 10'000; ++number) texts.emplace(view(key_text(number)));
  CHECK(texts.size() == 10'000);
  CHECK(texts.begin()->size() == kKeyLength);
}

TEST_CASE("a trace is the same for the same seed, and another for another") {
  Trace one({.keys = 1000, .seed = 7});
  Trace same({.keys = 1000, .seed = 7});
  Trace other({.keys = 1000, .seed = 8});
  int differences = 0;
  for (int i = 0; i < 1000; ++i) {
    const Request request = one.next();
    const Request again = same.next();
    CHECK(request.key == again.key);
    CHECK(request.overwrites == again.overwrites);
    if (other.next().key != request.key) ++differences;
  }
  CHECK(differences > 500);
}

TEST_CASE("a tenth of the requests are overwrites, and the first key of Zipf's law has its share") {
  constexpr int kRequests = 100'000;
  Trace trace({.keys = 1000, .zipf = 0.99});
  int overwrites = 0;
  int first = 0;
  for (int i = 0; i < kRequests; ++i) {
    const Request request = trace.next();
    CHECK(request.key < 1000);
    overwrites += request.overwrites ? 1 : 0;
    first += request.key == 0 ? 1 : 0;
  }
  CHECK(overwrites == doctest::Approx(kRequests * 0.1).epsilon(0.05));
  CHECK(first == doctest::Approx(kRequests / 7.73).epsilon(0.05));  // sum of r^-0.99 over 1000 ranks
}

TEST_CASE("lognormal values have a median of 200 bytes and a mean of 200 times e to the half") {
  constexpr uint32_t kKeys = 100'000;
  const Trace trace({.keys = kKeys, .sizes = ValueSizes::kLognormal});
  uint32_t below = 0;
  for (uint32_t key = 0; key < kKeys; ++key) below += trace.value_size(key) < 200 ? 1 : 0;
  CHECK(below == doctest::Approx(kKeys * 0.5).epsilon(0.02));
  CHECK(trace.footprint() == doctest::Approx(kKeys * (16 + 200 * 1.6487)).epsilon(0.03));
}

TEST_CASE("times to live are log-uniform between their bounds, or there are none") {
  const Trace trace({.keys = 1000, .ttl_min = 20, .ttl_max = 3600});
  int short_lived = 0;
  for (uint32_t key = 0; key < 1000; ++key) {
    CHECK(trace.ttl(key) >= 20);
    CHECK(trace.ttl(key) <= 3600);
    short_lived += trace.ttl(key) < 268 ? 1 : 0;  // the geometric mean
  }
  CHECK(short_lived == doctest::Approx(500).epsilon(0.1));
  CHECK(Trace({.keys = 1000}).ttl(5) == 0);
}
