// egret.hpp: what owns what, and that it says what egret.h says.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "backend_process.h"
#include "egret.hpp"

namespace {

struct Served {
  BackendProcess backend;
  egret::Pool pool{{"backends", backend.address().c_str()}, {"reconnect_max", "50ms"}};
  egret::Client client{pool};
  Served() {
    int code = EGRET_E_UNAVAILABLE;
    for (int attempt = 0; attempt < 6000 && code != EGRET_OK; ++attempt) {
      code = client.connect(1'000'000'000);
      if (code != EGRET_OK) ::usleep(10'000);
    }
    REQUIRE(code == EGRET_OK);
  }
};

}  // namespace

TEST_CASE("what cannot be made is thrown, with words") {
  CHECK_THROWS_WITH_AS(egret::Pool({{"nothing", "1"}}), doctest::Contains("nothing"), egret::Error);
  CHECK_THROWS_WITH_AS(egret::Pool({{"proxy", "tcp:11211"}}), doctest::Contains("proxy"), egret::Error);
}

TEST_CASE("calls, results that own their values, multigets, a queue") {
  Served served;
  egret::Client& client = served.client;
  CHECK(client.set("k", "hello", 0, 7) == EGRET_STORED);
  egret::Result found = client.get("k");
  CHECK(found.is_hit());
  CHECK(found.value() == "hello");
  CHECK(found.client_flags() == 7);
  egret::Result moved = std::move(found);
  CHECK(moved.value() == "hello");
  CHECK(client.get("none").code() == EGRET_MISS);
  CHECK(client.store(EGRET_MODE_ADD, "k", "x").code() == EGRET_NOT_STORED);
  CHECK(client.store(EGRET_MODE_SET, "k", "w", 0, 0, moved.cas()).code() == EGRET_STORED);
  CHECK(client.get_and_touch("k", 100).value() == "w");
  CHECK(client.touch("k", 100) == EGRET_HIT);
  uint64_t now = 0;
  CHECK(client.set("n", "5") == EGRET_STORED);
  CHECK(client.increment("n", 3, now) == EGRET_NUMBER);
  CHECK(now == 8);
  CHECK(client.decrement("n", 1, now) == EGRET_NUMBER);
  CHECK(now == 7);
  const std::vector<std::string_view> keys{"k", "none", "n"};
  const std::vector<egret::Result> results = client.get(keys);
  CHECK(results[0].value() == "w");
  CHECK(results[1].code() == EGRET_MISS);
  CHECK(results[2].value() == "7");
  const std::vector<egret_op> ops{egret::set_op("a", "1", 0, 1), egret::get_op("a", 2)};
  REQUIRE(client.submit(ops) == 2);
  std::vector<egret::Result> reaped(2);
  CHECK(client.wait(reaped, 2, -1) == 2);
  CHECK(client.pending() == 0);
  CHECK(reaped[0].tag() + reaped[1].tag() == 3);
  CHECK(client.remove("a") == EGRET_DELETED);
  CHECK(client.flush_all() == EGRET_OK);
  CHECK(client.get("k").code() == EGRET_MISS);
  CHECK(served.pool.server_of("k") == 0);
}

TEST_CASE("a call that is refused as a whole says so in each result") {
  Served served;
  egret_op wrong = egret::get_op("k");
  wrong.size = 1;
  const std::vector<egret_op> ops{wrong, egret::get_op("k")};
  for (const egret::Result& result : served.client.execute(ops)) CHECK(result.code() == EGRET_E_ARGUMENT);
}
