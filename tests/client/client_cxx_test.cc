// egret.hpp: what owns what, and that it says what egret.h says.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
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

TEST_CASE("an event loop: a descriptor, calls that own their results, tags that are forgotten") {
  Served served;
  egret::Client& client = served.client;
  CHECK(client.set("k", "hello") == EGRET_STORED);
  std::vector<egret::Result> kept;
  const auto keep = [&](egret::Result result) { kept.push_back(std::move(result)); };
  REQUIRE(client.on_result(keep) == EGRET_OK);
  const std::vector<egret_op> ops{egret::get_op("k", 1), egret::get_op("k", 2), egret::get_op("none", 3)};
  CHECK(client.submit(ops) == 3);
  CHECK(client.forget(2) == 1);
  while (client.pending() > 0) {
    pollfd awaited{client.fd(), POLLIN, 0};
    // Asked anew: behind progress() nothing may be under way any more, and nothing would wake it.
    if (client.arm() == 0 && client.pending() > 0) REQUIRE(::poll(&awaited, 1, 20'000) == 1);
    client.progress();
  }
  REQUIRE(kept.size() == 2);
  for (const egret::Result& result : kept) CHECK(result.value() == (result.tag() == 1 ? "hello" : ""));
  CHECK(client.no_calls() == EGRET_OK);
  CHECK(client.submit(std::span(ops).first(1)) == 1);
  egret::Result reaped[1];
  CHECK(client.wait(reaped, 1, -1) == 1);
  CHECK(reaped[0].value() == "hello");
}

TEST_CASE("a thread's own client, values into memory of the caller, counters, a file of options, the log") {
  Served served;
  int lines = 0;
  const auto count = [&](int, std::string_view line) { lines += line.empty() ? 0 : 1; };
  egret::log_to(count);
  {
    egret::Client own = egret::Client::mine(served.pool);
    egret::Client again = egret::Client::mine(served.pool);
    CHECK(own.raw() == again.raw());
    CHECK(own.adopt() == EGRET_OK);
    CHECK(own.set("k", "hello") == EGRET_STORED);
    char to[3];
    size_t length = 0;
    CHECK(again.get_into("k", to, length) == EGRET_HIT);
    CHECK(length == 5);
    CHECK(std::string_view(to, 3) == "hel");
  }
  CHECK(egret::Client::mine(served.pool).get("k").value() == "hello");  // no object has freed it
  CHECK_FALSE(served.client.counters().empty());
  CHECK(lines > 0);
  egret::log_to(nullptr);
  char name[] = "/tmp/egret-cxx-XXXXXX";
  const int fd = ::mkstemp(name);
  const std::string text = "backends: [\"" + served.backend.address() + "\"]\n";
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(fd);
  CHECK(egret::Pool::from_file(name).server_of("k") == 0);
  ::unlink(name);
  CHECK_THROWS_AS(egret::Pool::from_file(name), egret::Error);
}
