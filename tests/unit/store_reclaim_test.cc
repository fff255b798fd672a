// Who is evicted and who stays, what is swept, what compaction gains, and that no step does too much. The engine's own
// counters tell; see backend/store/upkeep/reclaim.cc and sweep.cc.
#include <random>

#include <doctest/doctest.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::SetMode;
using op::StatId;

namespace {
std::string key_of(const char* name, uint64_t number) {
  return std::string(name) + "-" + std::to_string(number);
}
uint64_t hash_of(const Harness& h, std::string_view key) {
  return op::hash_key(key, h.config.hash_seed);
}
// Some more items, each new, of so many bytes in all.
void fill(Harness& h, uint64_t bytes, size_t length = 100) {
  static uint64_t number = 0;
  for (uint64_t done = 0; done < bytes; done += length + 40)
    REQUIRE(h.set(key_of("fill", number++), std::string(length, 'f')) == ResultCode::kStored);
}
uint64_t count_hits(Harness& h, const char* name, uint64_t count) {
  uint64_t hits = 0;
  for (uint64_t i = 0; i < count; ++i) hits += h.get(key_of(name, i)) != "-" ? 1 : 0;
  return hits;
}
constexpr uint64_t kMiB = 1u << 20;
}  // namespace

TEST_CASE("a scan of new items does not push out what has been read") {
  Harness h(small_store(8 * kMiB));
  for (uint64_t i = 0; i < 10'000; ++i) h.set(key_of("popular", i), std::string(100, 'p'));
  for (int round = 0; round < 3; ++round) REQUIRE(count_hits(h, "popular", 10'000) == 10'000);
  fill(h, 16 * kMiB);
  CHECK(h.stat(StatId::kEvictions) > 50'000);
  CHECK(count_hits(h, "popular", 10'000) > 9'000);
}

TEST_CASE("of two sets of items those that are read stay, those that are not go") {
  Harness h(small_store(4 * kMiB));
  for (uint64_t i = 0; i < 5'000; ++i) {
    h.set(key_of("read", i), std::string(100, 'r'));
    h.set(key_of("unread", i), std::string(100, 'u'));
  }
  for (int round = 0; round < 8; ++round) {
    count_hits(h, "read", 5'000);
    fill(h, kMiB);
  }
  CHECK(count_hits(h, "read", 5'000) > 4'900);
  CHECK(count_hits(h, "unread", 5'000) < 100);
}

TEST_CASE("what comes back soon after it was evicted goes to the main queue, and survives what it did not before") {
  Harness h(small_store(4 * kMiB));
  fill(h, 8 * kMiB);
  for (uint64_t i = 0; i < 500; ++i) h.set(key_of("back", i), std::string(100, 'b'));
  op::Op peek = h.make(op::OpCode::kGet, "back-499");
  peek.options = op::kPeek;
  while (h.run(peek).code == ResultCode::kHit) fill(h, 64u << 10);
  const uint64_t hits = h.stat(StatId::kGhostHits);
  for (uint64_t i = 0; i < 500; ++i) h.set(key_of("back", i), std::string(100, 'b'));
  CHECK(h.stat(StatId::kGhostHits) - hits > 400);
  for (uint64_t i = 0; i < 500; ++i) h.set(key_of("new", i), std::string(100, 'n'));
  fill(h, 6 * kMiB);
  CHECK(count_hits(h, "new", 500) == 0);
  CHECK(count_hits(h, "back", 500) > 400);
}

// Each value is more than the small queue's share, and more than what is free: it may be all that this queue has.
TEST_CASE("a value that was just stored is still there when room has been made, however large it is") {
  for (const bool is_uploaded : {false, true}) {
    Harness h(small_store(8 * kMiB, kMiB));
    std::mt19937_64 random(1);
    uint64_t missed = 0;
    for (uint64_t i = 0; i < 3'000; ++i) {
      const size_t length = i % 1'000 < 500 ? 1 + random() % 60'000 : 200'000 + random() % 800'000;
      const std::string key = key_of("a", random() % 200);
      const std::string value(length, 'v');
      if (is_uploaded) {
        auto reserved = h.store->reserve(key, static_cast<uint32_t>(length));
        REQUIRE(reserved.upload.write(0, value) == ResultCode::kOk);
        REQUIRE(reserved.upload.commit(h.make(op::OpCode::kCommit, key)).code == ResultCode::kStored);
      } else {
        REQUIRE(h.set(key, value) == ResultCode::kStored);
      }
      while (h.store->idle_step()) {
      }
      missed += h.get(key).size() == length ? 0 : 1;
      h.get(key_of("a", random() % 200));
    }
    CHECK(missed == 0);
    CHECK(h.stat(StatId::kEvictions) > 1'000);
  }
}

TEST_CASE("a read of an item that is expired or flushed does not keep it") {
  Harness h;
  h.set("a", "v", 5);
  h.pass_seconds(5);
  h.clock.advance_seconds(1);
  CHECK(h.get("a") == "-");
  CHECK(h.store->counts().items == 0);
  CHECK(h.stat(StatId::kGetExpired) == 1);
}

TEST_CASE("expired items are swept without being asked for, a bounded step at a time") {
  Harness h(small_store(16 * kMiB));
  for (uint64_t i = 0; i < 50'000; ++i) h.set(key_of("a", i), "v", i % 2 == 0 ? 10 : 0);
  h.pass_seconds(30);
  uint64_t most = 0;
  for (int i = 0; i < 10'000 && h.store->counts().items > 25'000; ++i) {
    const uint64_t before = h.store->counts().items;
    h.store->begin_pass();
    most = std::max(most, before - h.store->counts().items);
  }
  CHECK(h.store->counts().items == 25'000);
  CHECK(h.stat(StatId::kReclaimed) == 25'000);
  CHECK(h.stat(StatId::kExpired) == 25'000);
  CHECK(most < 1'000);
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("flushed items are swept without being asked for, in idle moments, until nothing is left to do") {
  Harness h(small_store(16 * kMiB));
  const uint64_t before = h.store->memory().used;
  for (uint64_t i = 0; i < 50'000; ++i) h.set(key_of("a", i), std::string(100, 'v'));
  h.flush_all();
  h.pass_seconds(h.store->upkeep_in_seconds());
  int steps = 0;
  while (h.store->idle_step()) REQUIRE(++steps < 100'000);
  CHECK(steps > 50);
  CHECK(h.store->counts().items == 0);
  CHECK(h.stat(StatId::kReclaimed) == 50'000);
  CHECK(h.store->memory().used < before + 2 * kMiB);  // what is left is the index's
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("pages of which most is deleted are compacted: free again while what they had stays") {
  Harness h(small_store(8 * kMiB));
  for (uint64_t i = 0; i < 40'000; ++i) {
    const std::string key = key_of("a", i);
    const std::string value(100, static_cast<char>('a' + i % 26));
    op::Op set = h.make_set(key, value, 1000, 42);
    if (i % 3 == 0) set.options = op::kExplicitCas, set.new_cas = i;
    REQUIRE(h.run(set).code == ResultCode::kStored);
  }
  REQUIRE(h.stat(StatId::kEvictions) == 0);
  std::vector<uint64_t> cas;
  for (uint64_t i = 0; i < 40'000; i += 5) cas.push_back(h.gets(key_of("a", i)).cas);
  for (uint64_t i = 0; i < 40'000; ++i) {
    if (i % 5 != 0) REQUIRE(h.erase(key_of("a", i)) == ResultCode::kDeleted);
  }
  h.check();
  fill(h, 5 * kMiB);
  CHECK(h.stat(StatId::kCopiedBytes) > 0);
  CHECK(h.stat(StatId::kEvictions) == 0);
  for (uint64_t i = 0; i < 40'000; i += 5) {
    const op::Result got = h.gets(key_of("a", i));
    CAPTURE(i);
    REQUIRE(got.code == ResultCode::kHit);
    REQUIRE(got.value == std::string(100, static_cast<char>('a' + i % 26)));
    REQUIRE(got.client_flags == 42);
    REQUIRE(got.cas == cas[i / 5]);
  }
  h.pass_seconds(1000);
  CHECK(h.get(key_of("a", 0)) == "-");  // and the time it has
}

TEST_CASE("a large value's pages are free when it is overwritten, deleted, flushed or evicted") {
  Harness h(small_store(16 * kMiB, 2 * kMiB));
  h.set("other", "v");
  const uint64_t before = h.store->memory().used;
  const std::string value(1'500'000, 'v');
  const auto is_free = [&] { return h.store->memory().used == before; };
  h.set("a", value);
  CHECK(h.store->memory().used >= before + 1'500'000);
  h.set("a", "short");
  CHECK(is_free());
  h.set("a", value);
  h.set("a", value);
  CHECK(h.store->memory().used < before + 1'600'000);
  h.erase("a");
  CHECK(is_free());
  h.set("a", value);
  h.flush_all();
  CHECK(h.get("a") == "-");
  CHECK(is_free());
  for (uint64_t i = 0; i < 40; ++i) REQUIRE(h.set(key_of("a", i), value) == ResultCode::kStored);
  CHECK(h.stat(StatId::kEvictions) >= 30);
  h.check();
}

TEST_CASE("append and prepend to a large value copy what is added and little more") {
  for (const SetMode mode : {SetMode::kAppend, SetMode::kPrepend}) {
    Harness h(small_store(32 * kMiB, 4 * kMiB));
    std::string value(2'000'000, 'v');
    h.set("a", value);
    const uint64_t before = h.stat(StatId::kInsertedBytes);
    const uint64_t used = h.store->memory().used;
    for (int i = 0; i < 1000; ++i) {
      const std::string part = key_of("part", i);
      REQUIRE(h.store_as(mode, "a", part) == ResultCode::kStored);
      value.insert(mode == SetMode::kAppend ? value.size() : 0, part);
    }
    CHECK(h.get("a") == value);
    CHECK(h.store->memory().used < used + 1'000 * 20 + 512 * 1024);
    CHECK(h.store->memory().used < used + 10 * kPageSize);
    CHECK((h.stat(StatId::kInsertedBytes) - before) / 1000 < 8'000);  // a chunk, and the list of all
  }
}

TEST_CASE("a large value that grows by uploaded appends takes up little more than its length") {
  Harness h(small_store(64 * kMiB, 16 * kMiB));
  std::string value(20'000, 'v');
  h.set("a", value);
  op::Op append = h.make(op::OpCode::kCommit, "a");
  append.mode = SetMode::kAppend;
  for (int i = 0; i < 800; ++i) {
    const std::string part(10'000, static_cast<char>('a' + i % 26));
    auto reserved = h.store->reserve("a", static_cast<uint32_t>(part.size()));
    REQUIRE(reserved.upload.write(0, part) == ResultCode::kOk);
    REQUIRE(reserved.upload.commit(append).code == ResultCode::kStored);
    value += part;
  }
  CHECK(h.get("a") == value);
  CHECK(h.store->memory().used < value.size() + 2 * kMiB);
}

TEST_CASE("a pinned item is neither moved nor freed while all around it is drained, and then it is") {
  Harness h(small_store(4 * kMiB));
  const std::string value(3'000, 'p');
  std::vector<Store::Pin> pins;
  for (uint64_t i = 0; i < 4; ++i) {
    h.set(key_of("pinned", i), value);
    fill(h, 256u << 10);
    pins.push_back(h.store->pin(key_of("pinned", i), hash_of(h, key_of("pinned", i))));
    REQUIRE(bool{pins.back()});
  }
  fill(h, 16 * kMiB);
  for (const Store::Pin& pin : pins) CHECK(Harness::pinned_value(pin) == value);
  h.check();
  pins.clear();
  fill(h, 16 * kMiB);
  for (uint64_t i = 0; i < 4; ++i) CHECK(h.get(key_of("pinned", i)) == "-");
}

TEST_CASE("many pins on what is oldest do not stop others from being stored") {
  Harness h(small_store(32 * kMiB));
  std::vector<Store::Pin> pins;
  for (uint64_t i = 0; i < 400; ++i) {
    h.set(key_of("pinned", i), std::string(7'000, 'p'));
    if (Store::Pin pin = h.store->pin(key_of("pinned", i), hash_of(h, key_of("pinned", i))))
      pins.push_back(std::move(pin));
  }
  CHECK(pins.size() > 17);
  fill(h, 64 * kMiB);
  h.check();
  for (const Store::Pin& pin : pins) CHECK(Harness::pinned_value(pin).size() == 7'000);
}

TEST_CASE("a pin of a dead client leaves nothing behind") {
  Harness h(small_store(8 * kMiB, kMiB));
  const uint64_t before = h.store->memory().used;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(h.set("a", std::string(900'000, 'v')) == ResultCode::kStored);
    Store::Pin pin = h.store->pin("a", hash_of(h, "a"));
    REQUIRE(bool{pin});
    REQUIRE(h.erase("a") == ResultCode::kDeleted);
    REQUIRE(h.store->memory().used > before + 800'000);
  }
  CHECK(h.store->memory().used == before + kPageSize);  // the log's head
  h.check();
}

TEST_CASE("what an append extends may have to move, or to go, to make room for it") {
  Harness h(small_store(kMinMemory, 256u << 10));
  std::mt19937_64 random(1);
  std::vector<std::string> values(12);
  uint64_t gone = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t which = random() % values.size();
    const std::string key = key_of("a", which);
    const std::string part(random() % 30'000, static_cast<char>('a' + i % 26));
    if (h.store_as(SetMode::kAppend, key, part) == ResultCode::kStored) {
      values[which] += part;
    } else {
      ++gone;
      if (h.set(key, part) != ResultCode::kStored) continue;
      values[which] = part;
    }
    const std::string got = h.get(key);
    REQUIRE((got == values[which] || got == "-"));
    if (i % 16 == 0) h.check();
  }
  CHECK(gone > 1'000);
}

// --- Without eviction

TEST_CASE("without eviction all that was deleted can be used again, wherever it lay") {
  for (const uint64_t one_in : {2, 10}) {
    Harness h(small_store(4 * kMiB, 64u << 10, false));
    uint64_t stored = 0;
    while (h.set(key_of("a", stored), std::string(100, 'v')) == ResultCode::kStored) ++stored;
    uint64_t deleted = 0;
    for (uint64_t i = 0; i < stored; i += one_in) deleted += h.erase(key_of("a", i)) == ResultCode::kDeleted ? 1 : 0;
    uint64_t again = 0;
    while (again < deleted && h.set(key_of("b", again), std::string(100, 'w')) == ResultCode::kStored) ++again;
    CAPTURE(deleted);
    CHECK(again * 100 >= deleted * 95);
    h.check();
    for (uint64_t i = 1; i < stored; i += one_in) REQUIRE(h.get(key_of("a", i)).size() == 100);
    CHECK(count_hits(h, "b", again) == again);
  }
}

TEST_CASE("without eviction a full store goes on for ever as long as as much goes as comes") {
  Harness h(small_store(kMinMemory, 64u << 10, false));
  std::mt19937_64 random(3);
  std::vector<std::string> keys;
  uint64_t number = 0;
  uint64_t refused = 0;
  const auto put = [&] {
    const std::string key = key_of("a", number++);
    const size_t length = random() % 10 == 0 ? random() % 20'000 : random() % 300;
    if (h.set(key, std::string(length, 'v')) == ResultCode::kStored) {
      keys.push_back(key);
    } else {
      ++refused;
    }
  };
  while (refused < 1) put();
  for (int i = 0; i < 100'000; ++i) {
    const size_t which = random() % keys.size();
    REQUIRE(h.erase(keys[which]) == ResultCode::kDeleted);
    keys[which] = keys.back();
    keys.pop_back();
    put();
  }
  h.check();
  for (const std::string& key : keys) REQUIRE(h.get(key) != "-");
}

TEST_CASE("without eviction what is expired makes room soon") {
  Harness h(small_store(4 * kMiB, 64u << 10, false));
  uint64_t stored = 0;
  while (h.set(key_of("a", stored), std::string(100, 'v'), 10) == ResultCode::kStored) ++stored;
  h.pass_seconds(10);
  for (int i = 0; i < 10'000; ++i) h.store->begin_pass();
  uint64_t again = 0;
  while (again < stored && h.set(key_of("b", again), std::string(100, 'v')) == ResultCode::kStored) ++again;
  CHECK(again * 100 >= stored * 95);
}

// --- Work. Where checks are on, the store itself asserts that each step keeps to its limit (work.h).

TEST_CASE("no step does too much: all items are hot") {
  Harness h(small_store(8 * kMiB));
  for (uint64_t i = 0; i < 200'000; ++i) {
    h.set(key_of("a", i), std::string(30, 'v'));
    for (int reads = 0; reads < 3; ++reads) h.get(key_of("a", i));
  }
  CHECK(h.stat(StatId::kEvictions) > 10'000);
  for (uint64_t i = 0; i < 2'000; ++i) REQUIRE(h.set(key_of("b", i), std::string(8'000, 'v')) == ResultCode::kStored);
  CHECK(h.stat(StatId::kStepsOver64us) == 0);
}

TEST_CASE("no step does too much: the smallest records there are, hot ones, give way to middling and large ones") {
  for (const size_t length : {4'000, 8'190, 60'000, 500'000, 1'000'000}) {
    Harness h(small_store(16 * kMiB, kMiB));
    for (uint64_t i = 0; i < 500'000; ++i) {
      const std::string key(reinterpret_cast<const char*>(&i), 5);
      h.set(key, "123");
      for (uint64_t reads = 0; reads < i % 4; ++reads) h.get(key);
    }
    for (uint64_t i = 0; i < 50 * kMiB / length / 2; ++i)
      REQUIRE(h.set(key_of("b", i), std::string(length, 'v')) == ResultCode::kStored);
    if (length < kMaxInline) CHECK(h.stat(StatId::kStepsOver64us) == 0);
    h.check();
  }
}

TEST_CASE("no step does too much: the largest values, stored, evicted, flushed and swept") {
  Harness h(small_store(512 * kMiB, 128 * kMiB));
  const std::string value(128 * kMiB - 4096, 'v');
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 4; ++i) REQUIRE(h.set(key_of("a", i), value) == ResultCode::kStored);
    fill(h, kMiB);
    h.check();
    h.flush_all();
    h.pass_seconds(h.store->upkeep_in_seconds());
    while (h.store->idle_step()) {
    }
    CHECK(h.store->counts().items == 0);
  }
}

// As the poll loop does it: in parts.
TEST_CASE("no step does too much: a value of 128 MiB is uploaded where small ones were") {
  Harness h(small_store(512 * kMiB, 128 * kMiB));
  for (uint64_t i = 0; i < 100'000; ++i) h.set(key_of("a", i), std::string(5'000, 'v'));
  const std::string part(32u << 10, 'p');
  for (int round = 0; round < 4; ++round) {
    auto reserved = h.store->reserve("large", 120 * kMiB);
    REQUIRE(reserved.code == ResultCode::kOk);
    for (uint32_t at = 0; at < 120 * kMiB; at += static_cast<uint32_t>(part.size()))
      REQUIRE(reserved.upload.write(at, part) == ResultCode::kOk);
    CHECK(reserved.upload.commit(h.make(op::OpCode::kCommit, "large")).code == ResultCode::kStored);
  }
}

}  // namespace egret::store
