// raw-read over the memory fabric: one READ a get, and nothing of the server's.
#include <doctest/doctest.h>

#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

TEST_CASE("a get is one READ, and the server posts nothing") {
  InMemory laboratory("raw-read", {.servers = 2, .clients = 3, .window = 4}, 500);
  const Seen seen = laboratory.run({.ops = 2000});
  CHECK(seen.first_wrong == "");
  CHECK(seen.hits == 2000);
  CHECK(seen.clients.of(Verb::kRead) == 2000);
  CHECK(seen.clients.payload_bytes == 2000 * 32);
  CHECK(seen.servers.doorbells == 0);
}

TEST_CASE("a server that stands still serves READs; one that was killed fails them") {
  InMemory laboratory("raw-read", {.servers = 1, .clients = 1}, 50);
  laboratory.stop_serving(true);
  CHECK(laboratory.run({.ops = 100}).hits == 100);
  laboratory.world().kill(0);
  CHECK(laboratory.one(0, OpKind::kGet, 7).outcome == Outcome::kFailed);
}
