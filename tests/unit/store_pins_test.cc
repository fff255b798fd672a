// What pinned and lent values keep from others: their own memory, and no more of the pages that their records lie in.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "store_harness.h"

using namespace egret;
using namespace egret::store;
using op::ResultCode;
using op::StatId;

namespace {

std::string numbered(std::string_view name, size_t number) {
  return std::string(name) + std::to_string(number);
}

Store::Pin lend(Harness& h, const std::string& key) {
  return h.store->pin(key, op::hash_key(key, h.config.hash_seed), PinUse::kLend);
}

// Sets key0 to key`count - 1` and lends them.
std::vector<Store::Pin> set_and_lend(Harness& h, size_t count, const std::string& value) {
  std::vector<Store::Pin> lent;
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(h.set(numbered("key", i), value) == ResultCode::kStored);
    lent.push_back(lend(h, numbered("key", i)));
    REQUIRE(lent.back());
  }
  return lent;
}

void idle(Harness& h) {
  for (int i = 0; i < 20'000; ++i) {
    h.store->begin_pass();
    h.store->idle_step();
  }
}

// Sets so many keys; returns how many sets were refused.
int refused_sets(Harness& h, std::string_view name, size_t count, const std::string& value) {
  int refused = 0;
  for (size_t i = 0; i < count; ++i) refused += h.set(numbered(name, i), value) == ResultCode::kStored ? 0 : 1;
  return refused;
}

// Those of name0 to name`count - 1` that are there.
std::vector<std::string> present(Harness& h, std::string_view name, size_t count) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    if (h.get(numbered(name, i)) != "-") keys.push_back(numbered(name, i));
  }
  return keys;
}

// Lends a value of each page of the log, whose other records are small, until no more is lent.
std::vector<Store::Pin> pin_every_page(Harness& h, const std::string& small, size_t smalls_of_a_page) {
  const std::string large = pattern(16'484);
  std::vector<Store::Pin> lent;
  size_t number = 0;
  for (size_t page = 0; page < 2000; ++page) {
    // The page's first pin ends before the others.
    h.set(numbered("first", page), large);
    Store::Pin first = lend(h, numbered("first", page));
    h.set(numbered("second", page), large);
    Store::Pin second = lend(h, numbered("second", page));
    if (!second) break;
    lent.push_back(std::move(second));
    first.release();
    h.erase(numbered("first", page));
    for (size_t i = 0; i < smalls_of_a_page; ++i) h.set(numbered("s", number++), small);
    h.store->begin_pass();
  }
  return lent;
}

}  // namespace

TEST_CASE("a version that is lent while it is read is charged to what is lent, and leaves readers their share") {
  Harness h(small_store(64u << 20, 1u << 20));
  const std::string value = pattern(500'000);
  std::vector<Store::Pin> readers, lent;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    h.set(key, value);
    Store::Pin reader = h.store->pin(key, op::hash_key(key, h.config.hash_seed));
    if (!reader) break;
    readers.push_back(std::move(reader));
    lent.push_back(lend(h, key));
    if (!lent.back()) break;
    readers.pop_back();
  }
  REQUIRE(!lent.empty());
  CHECK_MESSAGE(!lent.back(), "lending is bounded, too");
  CHECK_MESSAGE(lent.size() > 50, "by half of the memory, not by the readers' eighth");
  CHECK(lent.size() <= 68);
  h.set("other", value);
  CHECK(h.store->pin("other", op::hash_key("other", h.config.hash_seed)));
  h.check();
}

TEST_CASE("values that are lent keep only themselves: others of their page are evicted") {
  Harness h(small_store(64u << 20, 1u << 20));
  const std::string value = pattern(400'000);
  const std::vector<Store::Pin> lent = set_and_lend(h, 40, value);
  CHECK(refused_sets(h, "other", 1000, value) == 0);
  CHECK(h.stat(StatId::kEvictions) > 800);
  for (const Store::Pin& pin : lent) CHECK(Harness::pinned_value(pin) == value);
  h.check();
}

TEST_CASE("beside uploads of half of the memory a quarter of it is lent, and sets still find room") {
  Harness h(small_store(64u << 20, 1u << 20));
  const std::string value = pattern(500'000);
  h.store->set_upload_rights(64u << 20);
  std::vector<Store::Upload> open;
  while (h.store->memory().upload_room == 32u << 20 && open.size() < 60) open.push_back(upload(h, "uploaded", value));
  CHECK(open.size() == 60);
  std::vector<Store::Pin> lent;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(h.set(numbered("key", i), value) == ResultCode::kStored);
    Store::Pin pin = lend(h, numbered("key", i));
    if (!pin) break;
    lent.push_back(std::move(pin));
  }
  CHECK(lent.size() > 25);
  CHECK(lent.size() <= 40);  // when the uploads are done, half
  CHECK(refused_sets(h, "other", 200, value) == 0);
  for (const Store::Pin& pin : lent) CHECK(Harness::pinned_value(pin) == value);
  h.check();
  lent.clear();
  h.check();
}

TEST_CASE("a loan in every page of the log leaves other values room, whichever pin of a page ended first") {
  for (const size_t length : {0u, 60u}) {
    CAPTURE(length);
    Harness h(small_store(64u << 20, 1u << 20));
    const std::string small(length, 's');
    const std::vector<Store::Pin> lent = pin_every_page(h, small, length == 0 ? 2640 : 640);
    CHECK(lent.size() > 100);
    const uint64_t long_steps = h.stat(StatId::kStepsOver64us);
    CHECK(refused_sets(h, "small", 5000, small) == 0);
    CHECK(h.stat(StatId::kStepsOver64us) == long_steps);
    CHECK(refused_sets(h, "large", 100, pattern(100'000)) == 0);
    h.check();
  }
}

TEST_CASE("sets find room behind pages of which little may go") {
  for (const size_t lent_count : {8u, 40u}) {
    CAPTURE(lent_count);
    Harness h(small_store(64u << 20, 1u << 20));
    const std::string small(60, 's'), large = pattern(17'000), larger = pattern(20'000);
    std::vector<Store::Pin> lent;
    size_t number = 0;
    for (size_t page = 0; page < lent_count; ++page) {
      h.set(numbered("lent", page), large);
      lent.push_back(lend(h, numbered("lent", page)));
      REQUIRE(lent.back());
      h.set(numbered("other", page), large);
      for (size_t i = 0; i < 640; ++i) h.set(numbered("s", number++), small);
    }
    for (size_t i = 0; i < 800'000; ++i) h.set(numbered("s", number++), small);
    REQUIRE(h.stat(StatId::kEvictions) > 0);
    CHECK(refused_sets(h, "large", 3000, larger) == 0);
    for (const Store::Pin& pin : lent) CHECK(Harness::pinned_value(pin) == large);
    h.check();
  }
}

TEST_CASE("a few readers that take long do not keep old values in the place of new ones") {
  for (const size_t lent_count : {1u, 4u, 16u, 50u}) {
    CAPTURE(lent_count);
    Harness h(small_store(64u << 20, 1u << 20));
    const std::string value = pattern(100'000);
    h.check();
    refused_sets(h, "old", 1500, value);
    const std::vector<std::string> old = present(h, "old", 1500);
    REQUIRE(old.size() > 500);
    std::vector<Store::Pin> lent;
    for (size_t i = 0; i < lent_count; ++i) lent.push_back(lend(h, old[old.size() * i / lent_count]));
    CHECK(refused_sets(h, "new", 2000, value) == 0);
    size_t newest = 0;
    for (size_t i = 1900; i < 2000; ++i) newest += h.get(numbered("new", i)) != "-" ? 1 : 0;
    CHECK(newest > 80);
    CHECK(present(h, "old", 1500).size() < old.size() / 2);
    h.check();
  }
}

TEST_CASE("a limit that is lowered is reached while values are lent, as far as those leave it") {
  for (const size_t lent_count : {4u, 16u}) {
    CAPTURE(lent_count);
    Harness h(small_store(64u << 20, 1u << 20));
    const std::string value = pattern(100'000);
    refused_sets(h, "key", 600, value);
    std::vector<Store::Pin> lent;
    for (size_t i = 0; i < lent_count; ++i) {
      lent.push_back(lend(h, numbered("key", 599 - i * 560 / lent_count)));
      REQUIRE(lent.back());
    }
    REQUIRE(h.store->set_memory_limit(32u << 20) == ResultCode::kOk);
    idle(h);
    CHECK(h.store->memory().used <= 32u << 20);
    CHECK(refused_sets(h, "new", 1000, value) == 0);
    h.check();
  }
}

TEST_CASE("below what is lent a limit leaves sets room, and is reached when the loans end") {
  Harness h(small_store(64u << 20, 1u << 20));
  const std::string value = pattern(400'000);
  std::vector<Store::Pin> lent = set_and_lend(h, 60, value);
  REQUIRE(h.store->set_memory_limit(16u << 20) == ResultCode::kOk);
  idle(h);
  CHECK(refused_sets(h, "new", 200, pattern(100'000)) < 20);
  h.check();
  lent.clear();
  idle(h);
  CHECK(h.store->memory().used <= 16u << 20);
  h.check();
}
