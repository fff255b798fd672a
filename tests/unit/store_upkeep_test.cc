// What waits for idle moments: expired and flushed items go although nobody asks, and a caller knows when to come back.
#include <string>

#include <doctest/doctest.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
// Steps until there is nothing to do, as a partition does before it sleeps. Bounded, since it must come to an end.
uint32_t upkeep(Harness& h) {
  uint32_t steps = 0;
  while (h.store->idle_step()) REQUIRE(++steps < 100'000);
  return steps;
}
}  // namespace

TEST_CASE("nothing that expires, nothing to come back for") {
  Harness h(small_store(4u << 20));
  CHECK(h.store->upkeep_in_seconds() == Store::kNever);
  for (uint64_t i = 0; i < 10'000; ++i) h.set(key_of(i), "v");
  upkeep(h);
  CHECK(h.store->upkeep_in_seconds() == Store::kNever);
  h.pass_seconds(1'000);
  CHECK_FALSE(h.store->idle_step());
  CHECK(h.store->counts().items == 10'000);
}

TEST_CASE("with upkeep when it is due, all expired items are removed within two turns") {
  Harness h(small_store(4u << 20));
  for (uint64_t i = 0; i < 10'000; ++i) h.set(key_of(i), "v", i % 2 == 0 ? 25 : 0);
  h.set("last", "v", 1'000);
  upkeep(h);
  uint64_t passed = 0;
  for (int turn = 0; turn < 4 && h.store->counts().items > 5'001; ++turn) {
    const uint32_t wait = h.store->upkeep_in_seconds();
    REQUIRE(wait <= 20);
    REQUIRE(wait > 0);
    h.pass_seconds(wait);
    passed += wait;
    upkeep(h);
  }
  CHECK(h.store->counts().items == 5'001);
  CHECK(h.stat(StatId::kExpired) == 5'000);
  CHECK(passed <= 25 + 20);
  CHECK(h.store->upkeep_in_seconds() <= 20);
  h.erase("last");
  CHECK(h.store->upkeep_in_seconds() == Store::kNever);
}

TEST_CASE("a step of an idle moment is a short one") {
  Harness h(small_store(64u << 20));
  for (uint64_t i = 0; i < 200'000; ++i) h.set(key_of(i), "v", 1);
  h.pass_seconds(30);
  CHECK(upkeep(h) > 50);
  CHECK(h.store->counts().items == 0);
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("idle moments without anything to do are no steps") {
  Harness h(small_store(4u << 20));
  upkeep(h);
  const uint64_t before = h.stat(StatId::kStepsUnder1us);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(h.store->idle_step());
  CHECK(h.stat(StatId::kStepsUnder1us) == before);
}

TEST_CASE("upkeep is due for a pending flush, and what it hides is removed") {
  Harness h(small_store(4u << 20));
  for (uint64_t i = 0; i < 1'000; ++i) h.set(key_of(i), "v");
  h.flush_all(100);
  upkeep(h);
  uint64_t passed = 0;
  while (h.store->counts().items > 0) {
    const uint32_t wait = h.store->upkeep_in_seconds();
    REQUIRE(wait <= 100);
    REQUIRE(wait > 0);
    h.pass_seconds(wait);
    passed += wait;
    REQUIRE(passed <= 105);
    upkeep(h);
  }
  h.pass_seconds(h.store->upkeep_in_seconds());  // until its second is over
  upkeep(h);
  CHECK(h.store->upkeep_in_seconds() == Store::kNever);
}

TEST_CASE("a full store that must not evict comes to rest") {
  Harness h(small_store(kMinMemory, 64u << 10, false));
  uint64_t stored = 0;
  while (h.set(key_of(stored), std::string(100, 'v')) == ResultCode::kStored) ++stored;
  for (uint64_t i = 0; i < stored; i += 7) h.erase(key_of(i));
  upkeep(h);
  CHECK_FALSE(h.store->idle_step());
  for (uint64_t i = 1; i < stored; i += 7) CHECK(h.get(key_of(i)) == std::string(100, 'v'));
}

}  // namespace egret::store
