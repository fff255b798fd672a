// Ketama's placement: known answers (libmemcached's, see pool_ketama_oracle_test), shares, and which keys move.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "pool/ketama.h"

using namespace egret::pool;

namespace {

// One digit for each of key0, key1, ...: the number of its server.
std::string placement(const KetamaRing& ring, int keys) {
  std::string digits;
  for (int i = 0; i < keys; ++i) digits += static_cast<char>('0' + ring.server_of("key" + std::to_string(i)));
  return digits;
}

std::vector<KetamaServer> equals(size_t count) {
  std::vector<KetamaServer> servers;
  for (size_t i = 1; i <= count; ++i) servers.push_back({"10.0.0." + std::to_string(i) + ":11211", 1});
  return servers;
}

std::string placement(std::vector<KetamaServer> servers) {
  return placement(KetamaRing(servers), 60);
}

}  // namespace

TEST_CASE("keys are where libmemcached's weighted ketama puts them") {
  CHECK(placement(equals(3)) == "102202000200200001212201111011221211221212210010021202100110");
  CHECK(placement({{"10.0.0.1:11212"}, {"10.0.0.1:11213"}, {"10.0.0.1:11214"}}) ==
        "201202020000210201111020122201222202201110101112021110012110");
  CHECK(placement({{"cache-a:11211", 1}, {"cache-b:7000", 2}, {"cache-c:7000", 5}, {"::1:7000", 1}}) ==
        "313221322111212201222222032222102100222120202222211010223101");
  CHECK(placement(equals(9)) == "843268700708560777772861664854246243645257275745027862674863");
}

TEST_CASE("a key beyond the last point belongs to the first point's server") {
  const std::vector<KetamaServer> servers{{"10.0.0.1:11212"}, {"10.0.0.1:11213"}, {"10.0.0.1:11214"}};
  CHECK(KetamaRing(servers).server_of("key2470") == 0);  // the last point is server 1's
}

TEST_CASE("the default port is no part of a name") {
  CHECK(ketama_name("host:11211") == "host");
  CHECK(ketama_name("host:11212") == "host:11212");
  CHECK(ketama_name("host:111211") == "host:111211");
  CHECK(ketama_name("::1:11211") == "::1");
  CHECK(ketama_name("/run/x.sock") == "/run/x.sock");
  CHECK(ketama_name(":11211") == ":11211");  // what would be left names nobody
  CHECK(placement({{"a"}, {"b"}, {"c:1"}}) == placement({{"a:11211"}, {"b:11211"}, {"c:1"}}));
}

TEST_CASE("a pool of one has every key, and one without servers can be made") {
  CHECK(placement({{"alone", 7}}) == std::string(60, '0'));
  CHECK(KetamaRing().points_of(0) == 0);
}

TEST_CASE("points are 160 of an average server, in fours, rounded down in single precision") {
  const std::vector<KetamaServer> servers{{"a", 1}, {"b", 2}, {"c", 5}};
  const KetamaRing ring(servers);
  CHECK(ring.points_of(0) == 60);
  CHECK(ring.points_of(1) == 120);
  CHECK(ring.points_of(2) == 300);
  for (const size_t count : {2, 3, 24, 25, 26, 47, 64}) {
    CAPTURE(count);
    const KetamaRing pool(equals(count));
    CHECK(pool.points_of(0) == (count == 25 || count == 47 ? 156 : 160));
  }
}

TEST_CASE("a weight far below the others' gets no key") {
  const std::vector<KetamaServer> servers{{"light", 1}, {"heavy", 1000}};
  const KetamaRing ring(servers);
  CHECK(ring.points_of(0) == 0);
  CHECK(placement(ring, 60) == std::string(60, '1'));
}

TEST_CASE("shares follow the weights") {
  const std::vector<KetamaServer> servers{{"a:1", 1}, {"b:1", 3}, {"c:1", 6}};
  const KetamaRing ring(servers);
  std::vector<double> counts(3);
  constexpr int kKeys = 30'000;
  for (int i = 0; i < kKeys; ++i) ++counts[ring.server_of("user:" + std::to_string(i))];
  for (size_t i = 0; i < 3; ++i) {
    CHECK(std::abs(counts[i] / kKeys - servers[i].weight / 10.0) < 0.05);
  }
}

TEST_CASE("the order of the pool does not matter, and a server more moves only keys to itself") {
  const std::vector<KetamaServer> four = equals(4);
  const std::vector<KetamaServer> five = equals(5);
  std::vector<KetamaServer> turned(five.rbegin(), five.rend());
  const KetamaRing before(four);
  const KetamaRing after(five);
  const KetamaRing other(turned);
  int moved = 0;
  constexpr int kKeys = 10'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = std::to_string(i);
    const size_t now = after.server_of(key);
    REQUIRE(other.server_of(key) == 4 - now);
    if (now == before.server_of(key)) continue;
    REQUIRE(now == 4);
    ++moved;
  }
  CHECK(moved > kKeys / 10);
  CHECK(moved < kKeys * 3 / 10);
}
