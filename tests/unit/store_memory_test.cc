// The memory limit: eviction, its absence, mixed sizes, index growth in a full arena, and what is resident.
#include <cstdio>
#include <random>

#include <doctest/doctest.h>
#include <unistd.h>

#include "sanitized.h"
#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
uint64_t resident_bytes() {
  long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  std::fclose(file);
  return static_cast<uint64_t>(pages) * 4096;
}
}  // namespace

TEST_CASE("a full store evicts and goes on storing; the newest are there, the limit holds") {
  Harness h(small_store());
  for (uint64_t i = 0; i < 50'000; ++i) {
    REQUIRE(h.set(key_of(i), std::string(32, 'v')) == ResultCode::kStored);
    REQUIRE(h.store->memory().used <= kMinMemory);
    if (i % 5'000 == 0) h.check();
  }
  CHECK(h.stat(StatId::kEvictions) > 30'000);
  CHECK(h.stat(StatId::kEvictedUnfetched) == h.stat(StatId::kEvictions));
  CHECK(h.stat(StatId::kCurrItems) + h.stat(StatId::kEvictions) == 50'000);
  CHECK(h.store->counts().items * 140 > kMinMemory);  // with 16 pages in all, those that are begun or kept free weigh
  for (uint64_t i = 49'000; i < 50'000; ++i) CHECK(h.get(key_of(i)) == std::string(32, 'v'));
}

TEST_CASE("what is read often outlives what is not") {
  Harness h(small_store());
  for (int i = 0; i < 100; ++i) h.set("hot-" + std::to_string(i), "v");
  for (uint64_t i = 0; i < 100'000; ++i) {
    h.set(key_of(i), std::string(32, 'v'));
    h.get("hot-" + std::to_string(i % 100));
  }
  for (int i = 0; i < 100; ++i) CHECK(h.get("hot-" + std::to_string(i)) == "v");
}

TEST_CASE("expired items make room first and count as reclaimed") {
  Harness h(small_store());
  for (uint64_t i = 0; i < 3'000; ++i) h.set(key_of(i), std::string(32, 'v'), 1);
  h.pass_seconds(1);
  for (uint64_t i = 3'000; i < 20'000; ++i) h.set(key_of(i), std::string(32, 'v'));
  CHECK(h.stat(StatId::kReclaimed) > 2'000);
  CHECK(h.stat(StatId::kExpiredUnfetched) == h.stat(StatId::kReclaimed));
}

TEST_CASE("without eviction a full store says so, keeps what it has, and takes more when something goes") {
  Harness h(small_store(kMinMemory, 64u << 10, false));
  uint64_t stored = 0;
  while (h.set(key_of(stored), std::string(100, 'v')) == ResultCode::kStored) ++stored;
  CHECK(stored > 5'000);
  CHECK(h.stat(StatId::kStoreNoMemory) == 1);
  CHECK(h.stat(StatId::kEvictions) == 0);
  CHECK(h.store_as(op::SetMode::kAdd, "another", std::string(100, 'v')) == ResultCode::kOutOfMemory);
  CHECK(h.store_as(op::SetMode::kAppend, key_of(0), std::string(1000, 'v')) == ResultCode::kNotStored);
  for (uint64_t i = 0; i < stored; ++i) REQUIRE(h.get(key_of(i)).size() == 100);
  h.check();
  CHECK(h.set(key_of(5), std::string(5000, 'v')) == ResultCode::kOutOfMemory);
  CHECK(h.get(key_of(5)) == "-");
  CHECK(h.erase(key_of(6)) == ResultCode::kDeleted);
  CHECK(h.set(key_of(7), std::string(100, 'w')) == ResultCode::kStored);
  CHECK(h.set("another", std::string(90, 'v')) == ResultCode::kStored);
}

TEST_CASE("no mix of sizes, in any succession, leaves memory that cannot be used") {
  Harness h(small_store(16u << 20, 1u << 20));
  std::mt19937_64 random(7);
  uint64_t number = 0;
  const auto fill = [&](uint64_t least, uint64_t most, uint64_t bytes) {
    while (bytes > 0) {
      const uint64_t size = least + random() % (most - least + 1);
      REQUIRE(h.set(key_of(number++), std::string(size, 'v')) == ResultCode::kStored);
      bytes -= std::min(bytes, size + 50);
    }
    h.check();
    const double used = static_cast<double>(h.store->memory().used) / (16u << 20);
    CAPTURE(least);
    CAPTURE(most);
    CHECK(used > 0.85);
  };
  fill(10, 100, 32u << 20);
  fill(1'000'000, 1'000'000, 64u << 20);
  fill(10, 100, 32u << 20);
  fill(100, 20'000, 64u << 20);
  fill(900'000, 1'000'000, 64u << 20);
  fill(1, 1, 8u << 20);
  fill(10, 1'000'000, 256u << 20);
  fill(500, 500, 64u << 20);
}

TEST_CASE("the index grows in a full arena: small items after large ones are held in number") {
  Harness h(small_store(16u << 20, 1u << 20));
  for (uint64_t i = 0; i < 40; ++i) h.set("large-" + std::to_string(i), std::string(1'000'000, 'v'));
  for (uint64_t i = 0; i < 400'000; ++i) REQUIRE(h.set(key_of(i), "v") == ResultCode::kStored);
  h.check();
  CHECK(h.store->counts().items > 300'000);
}

// A sanitizer's shadow is resident beside each page used: what the process holds there says nothing of the store.
TEST_CASE("memory becomes resident as it is used" * doctest::skip(kSanitized)) {
  const uint64_t before = resident_bytes();
  Harness h(small_store(uint64_t{4} << 30, 1u << 20));
  CHECK(resident_bytes() < before + (16u << 20));
  // Where the system gives huge pages, each value and each bucket of the index may make one of 2 MiB resident.
  for (uint64_t i = 0; i < 32; ++i) h.set(key_of(i), std::string(1'000'000, 'v'));
  CHECK(resident_bytes() < before + 32 * 2 * (2u << 20));
}

TEST_CASE("a key is found among many, before, during and after the index grows") {
  Harness h(small_store(64u << 20));
  for (uint64_t i = 0; i < 200'000; ++i) {
    REQUIRE(h.set(key_of(i), std::to_string(i)) == ResultCode::kStored);
    if (i % 20'011 == 0) h.check();
  }
  for (uint64_t i = 0; i < 200'000; ++i) REQUIRE(h.get(key_of(i)) == std::to_string(i));
  for (uint64_t i = 0; i < 200'000; i += 2) REQUIRE(h.erase(key_of(i)) == ResultCode::kDeleted);
  h.check();
  for (uint64_t i = 0; i < 200'000; ++i) REQUIRE(h.get(key_of(i)) == (i % 2 == 0 ? "-" : std::to_string(i)));
}

}  // namespace egret::store
