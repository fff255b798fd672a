// The purge: what is another's goes, what is stored meanwhile stays, in steps, and a warm restart knows that it is done.
#include <cstdio>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;

namespace {
StoreConfig with_room() {
  StoreConfig config;
  config.memory_limit = 64u << 20;
  config.item_size_max = 1u << 20;
  return config;
}

std::string name_of(uint64_t number) {
  return "key:" + std::to_string(number);
}

bool is_kept(std::string_view key) {
  return op::hash_key(key, 99) % 3 != 0;
}

// Steps until it is over; how many.
size_t purge(Harness& h) {
  size_t steps = 0;
  for (; h.store->purger().is_under_way(); ++steps) h.store->purger().step_alone();
  return steps;
}
}  // namespace

TEST_CASE("exactly what is refused is removed, in many steps") {
  Harness h(with_room());
  constexpr uint64_t kItems = 50'000;
  for (uint64_t i = 0; i < kItems; ++i) REQUIRE(h.set(name_of(i), "v", i % 2 * 1000) == ResultCode::kStored);
  h.store->purger().start(is_kept, 7);
  CHECK(h.store->purger().membership() == 0);
  CHECK(purge(h) > 100);
  CHECK(h.store->purger().membership() == 7);
  h.check();
  uint64_t kept = 0;
  for (uint64_t i = 0; i < kItems; ++i) {
    const bool is_there = h.get(name_of(i)) == "v";
    REQUIRE(is_there == is_kept(name_of(i)));
    kept += is_there ? 1 : 0;
  }
  CHECK(h.store->purger().removed() == kItems - kept);
  CHECK(h.store->counts().items == kept);
}

TEST_CASE("what is stored while it goes on stays, also in the place of what would have gone, and the index may grow") {
  Harness h(with_room());
  for (uint64_t i = 0; i < 3'000; ++i) h.set(name_of(i), "old");
  h.store->purger().start(nullptr, 1);
  for (uint64_t i = 0; h.store->purger().is_under_way(); ++i) {
    h.set(name_of(i * 7 % 3'000), "new");
    for (uint64_t n = 0; n < 100; ++n) h.set("more:" + std::to_string(i * 100 + n), "new");
    h.store->purger().step_alone();
  }
  size_t old = 0;
  for (uint64_t i = 0; i < 3'000; ++i) old += h.get(name_of(i)) == "old" ? 1 : 0;
  CHECK(old == 0);
  CHECK(h.get("more:99") == "new");
  CHECK(h.get(name_of(0)) == "new");
}

TEST_CASE("idle moments and passes go on with it by themselves") {
  Harness h(with_room());
  for (uint64_t i = 0; i < 2'000; ++i) h.set(name_of(i), "v");
  h.store->purger().start(nullptr, 1);
  CHECK(h.store->upkeep_in_seconds() == 0);
  h.store->begin_pass();
  CHECK(h.store->purger().removed() > 0);
  while (h.store->idle_step()) continue;
  CHECK(h.store->counts().items == 0);
  CHECK(h.store->upkeep_in_seconds() == Store::kNever);
}

TEST_CASE("large and pinned values go, too; who has one pinned reads on") {
  Harness h(with_room());
  const std::string large(900'000, 'v');
  for (uint64_t i = 0; i < 30; ++i) REQUIRE(h.set(name_of(i), large) == ResultCode::kStored);
  Store::Pin pin = h.store->pin(name_of(3), op::hash_key(name_of(3), h.config.hash_seed));
  REQUIRE(pin);
  h.store->purger().start(nullptr, 1);
  purge(h);
  h.check();
  CHECK(h.store->counts().items == 0);
  CHECK(h.pinned_value(pin) == large);
}

TEST_CASE("a purge that begins anew ends the one before") {
  Harness h(with_room());
  for (uint64_t i = 0; i < 2'000; ++i) h.set(name_of(i), "v");
  h.store->purger().start(nullptr, 1);
  h.store->purger().step_alone();
  h.store->purger().start([](std::string_view) { return true; }, 2);
  const uint64_t left = h.store->counts().items;
  purge(h);
  CHECK(h.store->purger().membership() == 2);
  CHECK(h.store->counts().items == left);
}

TEST_CASE("a warm restart knows for which members it was done; one that was under way is not") {
  StoreConfig config = with_room();
  config.warm_path = "/dev/shm/egret-purge-test." + std::to_string(::getpid());
  {
    Harness h(config);
    const auto restart = [&] {
      h.store.reset();
      h.store = std::move(Store::create(h.config).value());
      REQUIRE(h.store->opening().empty_because.empty());
      h.store->begin_pass();
    };
    for (uint64_t i = 0; i < 2'000; ++i) h.set(name_of(i), "v");
    restart();
    CHECK(h.store->purger().membership() == 0);
    h.store->purger().set_membership(7);
    restart();
    CHECK(h.store->purger().membership() == 7);
    h.store->purger().start(nullptr, 8);
    h.store->purger().step_alone();
    restart();
    CHECK(h.store->purger().membership() == 7);
    CHECK(h.store->counts().items > 0);
    h.store->purger().start(nullptr, 8);
    purge(h);
    restart();
    CHECK(h.store->purger().membership() == 8);
  }
  std::remove(config.warm_path.c_str());
}

}  // namespace egret::store
