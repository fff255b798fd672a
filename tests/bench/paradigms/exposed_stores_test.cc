// The stores that clients READ, by themselves: what was put is there, against std::map by seeds; how many probes a reader
// needs, against the papers; and that at every pause of a change a reader finds every key that is there all the time.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "bench/keyspace.h"
#include "bench/sampler.h"
#include "bench_paradigms/stores/buddy_allocator.h"
#include "bench_paradigms/stores/chained_table.h"
#include "bench_paradigms/stores/crc64.h"
#include "bench_paradigms/stores/cuckoo_table.h"
#include "bench_paradigms/stores/hopscotch_table.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)
using egret::bench::Keyspace;
using egret::bench::Rng;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string value_of(uint32_t key, uint64_t version, uint32_t bytes) {
  std::string value(bytes, '\0');
  egret::bench::write_value(value.data(), value.size(), key, version);
  return value;
}

// Zeroed and aligned as registered memory is.
class Region {
 public:
  explicit Region(size_t bytes) : words_(bytes / 8 + 8), bytes_(bytes) {
    const auto start = reinterpret_cast<uintptr_t>(words_.data());
    skip_ = (64 - start % 64) % 64;
  }
  std::span<std::byte> span() { return {reinterpret_cast<std::byte*>(words_.data()) + skip_, bytes_}; }

 private:
  std::vector<uint64_t> words_;
  size_t bytes_;
  size_t skip_ = 0;
};

struct Cuckoo {
  Cuckoo(uint32_t keys, double load, uint32_t value_bytes)
      : entries(size_t{CuckooTable::entries_for(keys, load)} * sizeof(CuckooEntry)),
        extents(CuckooTable::extent_bytes_for(keys, 16 + value_bytes)),
        table(entries.span(), extents.span(), &pause) {}
  CuckooEntry entry(uint32_t place) {
    CuckooEntry entry;
    std::memcpy(&entry, entries.span().data() + place * sizeof entry, sizeof entry);
    return entry;
  }
  // What a reader finds who looks at all places at once. Empty: nothing that is sound.
  std::string read(std::string_view key) {
    for (const uint32_t place : cuckoo_places(hash_of(key), static_cast<uint32_t>(entries.span().size() / 32))) {
      const CuckooEntry at = entry(place);
      if (!at.is_sound() || at.is_used == 0) continue;
      const std::string_view extent(reinterpret_cast<const char*>(extents.span().data()) + at.offset, at.size);
      if (crc64(bytes_of(extent)) == at.extent_crc && extent.substr(0, at.key_size) == key) {
        return std::string(extent.substr(at.key_size));
      }
    }
    return {};
  }
  Pause pause;
  Region entries, extents;
  CuckooTable table;
};

struct Hopscotch {
  Hopscotch(const Plan& plan, bool is_inline)
      : shape(HopscotchShape::of(plan, 0, is_inline)),
        slots(shape.slots_bytes()),
        values(shape.values_bytes()),
        table(shape, slots.span(), values.span(), &pause) {}
  // What a reader finds with one READ of the neighbourhood.
  std::string read(std::string_view key) {
    const auto near =
        slots.span().subspan(size_t{shape.home(hash_of(key))} * shape.slot_bytes(), shape.neighbourhood_bytes());
    const uint32_t at = shape.find(near, key);
    if (at == shape.hops) return {};
    const auto slot = near.subspan(size_t{at} * shape.slot_bytes(), shape.slot_bytes());
    const auto value = shape.is_inline() ? slot.subspan(shape.key_bytes, shape.value_bytes)
                                         : values.span().subspan(shape.offset_in(slot), shape.value_bytes);
    if (!shape.is_sound(slot, value)) return {};
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  Pause pause;
  HopscotchShape shape;
  Region slots, values;
  HopscotchTable table;
};

struct Chained {
  Chained(const Plan& plan, uint32_t keys)
      : shape(ChainedShape::of(plan, keys)),
        buckets(shape.buckets_bytes()),
        items(shape.items_bytes()),
        table(shape, buckets.span(), items.span(), &pause) {}
  Pause pause;
  ChainedShape shape;
  Region buckets, items;
  ChainedTable table;
};

// Random puts and erases, compared with a map after each. `put` and `erase` say whether they were done.
template <typename Put, typename Erase, typename Get>
void compare_with_map(const Keyspace& keys, uint64_t seed, Put put, Erase erase, Get get) {
  Rng rng(seed);
  std::map<uint32_t, std::string> model;
  for (uint64_t step = 0; step < 20'000; ++step) {
    const uint32_t key = rng.below(keys.count());
    if (rng.below(3) == 0) {
      CHECK(erase(keys.key(key)) == (model.erase(key) == 1));
    } else {
      const std::string value = value_of(key, step + 2, 32);
      CHECK(put(keys.key(key), value));
      model[key] = value;
    }
    const uint32_t other = rng.below(keys.count());
    const auto found = model.find(other);
    const auto is = get(keys.key(other));
    CHECK(is.has_value() == (found != model.end()));
    if (is && found != model.end()) CHECK(*is == found->second);
  }
  for (const auto& [key, value] : model) CHECK(get(keys.key(key)) == value);
}

}  // namespace

TEST_CASE("the CRC is CRC-64/XZ") {
  CHECK(crc64(bytes_of("123456789")) == 0x995dc9bbdf1939faULL);
  CHECK(crc64(bytes_of("")) == 0);
}

TEST_CASE("buddy blocks do not overlap, are joined again, and all bytes come back") {
  constexpr uint32_t kBytes = 64 * 1024 + 96;  // no power of two
  BuddyAllocator allocator(kBytes);
  const uint32_t all = allocator.free_bytes();
  CHECK(all == kBytes);
  Rng rng(3);
  std::map<uint32_t, uint32_t> used;  // offset, bytes
  for (int step = 0; step < 20'000; ++step) {
    if (!used.empty() && rng.below(2) == 0) {
      auto at = used.begin();
      std::advance(at, rng.below(static_cast<uint32_t>(used.size())));
      allocator.free(at->first);
      used.erase(at);
      continue;
    }
    const uint32_t bytes = 1 + rng.below(3000);
    const uint32_t offset = allocator.allocate(bytes);
    if (offset == BuddyAllocator::kNone) continue;
    const auto [at, is_new] = used.emplace(offset, BuddyAllocator::block_bytes(bytes));
    REQUIRE(is_new);
    CHECK(offset % at->second == 0);
    CHECK(offset + at->second <= kBytes);
    if (at != used.begin()) CHECK(std::prev(at)->first + std::prev(at)->second <= offset);
    if (std::next(at) != used.end()) CHECK(offset + at->second <= std::next(at)->first);
  }
  for (const auto& [offset, bytes] : used) allocator.free(offset);
  CHECK(allocator.free_bytes() == all);
  CHECK(allocator.allocate(64 * 1024) != BuddyAllocator::kNone);
}

TEST_CASE("a cuckoo table holds what a map holds") {
  for (const uint64_t seed : {1, 2, 3}) {
    const Keyspace keys(600, 16);
    Cuckoo store(600, 0.85, 32);
    compare_with_map(
        keys, seed, [&](auto key, const auto& value) { return store.table.put(key, value) == Outcome::kDone; },
        [&](auto key) { return store.table.erase(key) == Outcome::kDone; },
        [&](auto key) { return store.table.get(key); });
  }
}

TEST_CASE("a hopscotch table holds what a map holds, inline and with pointers") {
  for (const bool is_inline : {true, false}) {
    for (const uint32_t hops : {6, 8}) {
      Plan plan;
      plan.tuning.hops = hops;
      const Keyspace keys(600, 16);
      plan.keys = &keys;
      Hopscotch store(plan, is_inline);
      compare_with_map(
          keys, hops, [&](auto key, const auto& value) { return store.table.put(key, value) == Outcome::kDone; },
          [&](auto key) { return store.table.erase(key) == Outcome::kDone; },
          [&](auto key) { return store.table.get(key); });
      CHECK(store.table.moves() > 0);
    }
  }
}

TEST_CASE("chains hold what a map holds; a value is changed by an erase and an insert") {
  for (const double load : {0.5, 4.0}) {  // 4: most keys lie in further buckets
    Plan plan;
    plan.tuning.load = load;
    const Keyspace keys(600, 16);
    Chained store(plan, 600);
    compare_with_map(
        keys, 9,
        [&](auto key, const auto& value) {
          store.table.erase(key);
          return store.table.insert(key, value) == Outcome::kDone;
        },
        [&](auto key) { return store.table.erase(key) == Outcome::kDone; },
        [&](auto key) { return store.table.get(key); });
  }
}

TEST_CASE("a reader needs 1.6 probes at three quarters, 1.45 at 65 %") {
  constexpr uint32_t kKeys = 60'000;
  const Keyspace keys(kKeys, 16);
  const auto mean = [&](double load) {
    Cuckoo store(kKeys, load, 32);
    uint64_t entries = 0;
    for (uint32_t key = 0; key < kKeys; ++key)
      REQUIRE(store.table.put(keys.key(key), value_of(key, 1, 32)) == Outcome::kDone);
    for (uint32_t key = 0; key < kKeys; ++key) entries += store.table.walk(keys.key(key), false).entries;
    return static_cast<double>(entries) / kKeys;
  };
  const double at_75 = mean(0.75);
  const double at_65 = mean(0.65);
  MESSAGE(at_75, " ", at_65);
  CHECK(at_75 == doctest::Approx(1.6).epsilon(0.03));
  CHECK(at_65 == doctest::Approx(1.45).epsilon(0.03));
}

TEST_CASE("a hopscotch table is made so large that all keys fit, each in one READ") {
  for (const uint32_t hops : {6, 8}) {
    const Keyspace keys(200'000, 16);
    Plan plan;
    plan.keys = &keys;
    plan.tuning.hops = hops;
    Hopscotch store(plan, true);
    for (uint32_t key = 0; key < keys.count(); ++key) {
      REQUIRE(store.table.put(keys.key(key), value_of(key, 1, 32)) == Outcome::kDone);
    }
    for (uint32_t key = 0; key < keys.count(); ++key) REQUIRE(store.read(keys.key(key)) == value_of(key, 1, 32));
    MESSAGE("H ", hops, ": ", static_cast<double>(keys.count()) / store.shape.homes);
    CHECK(static_cast<double>(keys.count()) / store.shape.homes > 0.25);
  }
}

namespace {

// Puts, erases and inserts; at every pause, all keys but the one that changes are read.
template <typename Store>
void read_at_every_pause(Store& store, const Keyspace& keys) {
  Rng rng(5);
  std::map<uint32_t, std::string> present;
  uint32_t changing = 0;
  uint64_t missed = 0;
  uint64_t looks = 0;
  for (uint64_t step = 0; step < 1200; ++step) {
    if (step == keys.count()) {
      store.pause = [&] {
        for (const auto& [key, value] : present) {
          if (key != changing && store.read(keys.key(key)) != value) ++missed;
          ++looks;
        }
      };
    }
    changing = step < keys.count() ? static_cast<uint32_t>(step) : rng.below(keys.count());
    if (step >= keys.count() && rng.below(3) == 0) {
      store.table.erase(keys.key(changing));
      present.erase(changing);
      continue;
    }
    const std::string value = value_of(changing, step + 1, 32);
    REQUIRE(store.table.put(keys.key(changing), value) == Outcome::kDone);
    present[changing] = value;
  }
  CHECK(looks > 100'000);
  CHECK(missed == 0);
}

}  // namespace

TEST_CASE("at every pause of a change, a reader who looks at all places finds every other key") {
  const Keyspace keys(300, 16);
  Cuckoo cuckoo(300, 0.88, 32);  // puts move others
  read_at_every_pause(cuckoo, keys);
  for (const bool is_inline : {true, false}) {
    Plan plan;
    plan.keys = &keys;
    Hopscotch hopscotch(plan, is_inline);
    read_at_every_pause(hopscotch, keys);
    CHECK(hopscotch.table.moves() > 0);
  }
}
