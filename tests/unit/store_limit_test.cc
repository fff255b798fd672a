// The memory limit as it changes while the store serves.
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sanitized.h"
#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
void settle(Harness& h) {
  for (uint32_t steps = 0; h.store->idle_step(); ++steps) REQUIRE(steps < 100'000);
}

void fill(Harness& h, uint64_t count, size_t length, uint64_t first = 0) {
  for (uint64_t i = first; i < first + count; ++i) h.set(key_of(i), std::string(length, 'v'));
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}
}  // namespace

TEST_CASE("a lower limit holds after bounded steps, and all that stays is right") {
  Harness h(small_store(32u << 20));
  fill(h, 60'000, 600);
  h.set("large", std::string(60'000, 'L'));
  CHECK(h.store->memory().used > 30u << 20);
  REQUIRE(h.store->set_memory_limit(10u << 20) == ResultCode::kOk);
  CHECK(h.store->memory().limit == 10u << 20);
  CHECK(h.stat(StatId::kLimitMaxbytes) == 10u << 20);
  h.check();
  settle(h);
  CHECK(h.store->memory().used <= 10u << 20);
  CHECK(h.store->counts().items > 8'000);
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
  h.check();
  const std::string value(600, 'v');
  uint64_t found = 0;
  for (uint64_t i = 0; i < 60'000; ++i) {
    const std::string got = h.get(key_of(i));
    if (got == "-") continue;
    ++found;
    CHECK(got == value);
  }
  CHECK(found >= h.store->counts().items - 1);
  fill(h, 20'000, 600, 100'000);
  CHECK(h.store->memory().used <= 10u << 20);
}

TEST_CASE("it comes down under load, too, without idle moments") {
  Harness h(small_store(32u << 20));
  fill(h, 60'000, 600);
  REQUIRE(h.store->set_memory_limit(16u << 20) == ResultCode::kOk);
  for (uint64_t i = 0; h.store->memory().used > 16u << 20; ++i) {
    REQUIRE(i < 20'000);
    h.store->begin_pass();
    h.get(key_of(59'999));
  }
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("memory beyond the limit goes back to the system") {
  if (kSanitized) return;  // their shadow memory counts, too
  Harness h(small_store(256u << 20));
  fill(h, 230'000, 1'000);
  settle(h);
  const uint64_t full = resident_bytes();
  REQUIRE(h.store->set_memory_limit(32u << 20) == ResultCode::kOk);
  settle(h);
  CHECK(full - resident_bytes() > 180u << 20);
  REQUIRE(h.store->set_memory_limit(256u << 20) == ResultCode::kOk);
  settle(h);
  fill(h, 230'000, 1'000);
  CHECK(h.store->memory().used > 220u << 20);
}

TEST_CASE("a limit raised again, and beyond what the store began with, is used and kept") {
  Harness h(small_store(8u << 20));
  fill(h, 30'000, 600);
  const uint64_t at_first = h.store->counts().items;
  REQUIRE(h.store->set_memory_limit(4u << 20) == ResultCode::kOk);
  settle(h);
  CHECK(h.store->counts().items < at_first * 6 / 10);
  for (const uint64_t limit : {8u << 20, 40u << 20, 20u << 20, 128u << 20, 6u << 20, 64u << 20}) {
    CAPTURE(limit);
    REQUIRE(h.store->set_memory_limit(limit) == ResultCode::kOk);
    settle(h);
    fill(h, 250'000, 600);
    CHECK(h.store->memory().used <= limit);
    CHECK(h.store->memory().used > limit * 8 / 10);
    CHECK(h.store->counts().items > (limit - (3u << 20)) / 850);  // the index stays as large as it was
    h.check();
  }
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("what cannot be is refused, and changes nothing") {
  Harness h(small_store(8u << 20, 1u << 20));
  const uint64_t most = h.store->memory().most_limit;
  CHECK(most == 16 * (8u << 20));
  CHECK(h.store->set_memory_limit(most + kPageSize) == ResultCode::kOutOfMemory);
  CHECK(h.store->set_memory_limit(1u << 20) == ResultCode::kOutOfMemory);
  CHECK(h.store->set_memory_limit(0) == ResultCode::kOutOfMemory);
  CHECK(h.store->memory().limit == 8u << 20);
  CHECK(h.store->set_memory_limit(h.store->memory().least_limit) == ResultCode::kOk);
  settle(h);
  fill(h, 20'000, 200);
  CHECK(h.set("largest", std::string((1u << 20) - 200, 'v')) == ResultCode::kStored);
  CHECK(h.store->memory().used <= h.store->memory().limit);
}

TEST_CASE("without eviction a lower limit evicts nothing: there is no room until items are removed") {
  Harness h(small_store(8u << 20, 64u << 10, false));
  uint64_t stored = 0;
  while (h.set(key_of(stored), std::string(600, 'v')) == ResultCode::kStored) ++stored;
  REQUIRE(h.store->set_memory_limit(4u << 20) == ResultCode::kOk);
  settle(h);
  CHECK(h.store->counts().items >= stored - 1);
  uint64_t added = 0;  // what the page that is being written still has room for
  while (h.set("new-" + std::to_string(added), std::string(600, 'v')) == ResultCode::kStored) REQUIRE(++added < 300);
  for (uint64_t i = 0; i < stored * 3 / 4; ++i) h.erase(key_of(i));
  settle(h);
  CHECK(h.store->memory().used <= 4u << 20);
  CHECK(h.set("new", std::string(600, 'v')) == ResultCode::kStored);
}

TEST_CASE("uploads and pins outlive a limit that falls") {
  Harness h(small_store(16u << 20, 1u << 20));
  h.set("pinned", std::string(200'000, 'p'));
  auto pin = h.store->pin("pinned", h.make(op::OpCode::kGet, "pinned").hash);
  REQUIRE(bool{pin});
  auto reserved = h.store->reserve("up", 300'000);
  REQUIRE(reserved.code == ResultCode::kOk);
  REQUIRE(reserved.upload.write(0, std::string(200'000, 'u')) == ResultCode::kOk);
  fill(h, 30'000, 600);
  REQUIRE(h.store->set_memory_limit(4u << 20) == ResultCode::kOk);
  settle(h);
  CHECK(Harness::pinned_value(pin) == std::string(200'000, 'p'));
  REQUIRE(reserved.upload.write(200'000, std::string(100'000, 'u')) == ResultCode::kOk);
  op::Op commit = h.make(op::OpCode::kCommit, "up");
  CHECK(reserved.upload.commit(commit).code == ResultCode::kStored);
  CHECK(h.get("up") == std::string(300'000, 'u'));
  pin.release();
}

}  // namespace egret::store
