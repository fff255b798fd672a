// Pilaf's table, so filled that one more put moves another key from a later place to its first one: behind a reader who has
// looked at the first place already. It is found by trial: puts and erases on a table of the test's own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/keyspace.h"
#include "bench/sampler.h"
#include "bench_paradigms/stores/cuckoo_table.h"

namespace egret::bench_paradigms {

struct MovedKey {
  std::vector<std::pair<OpKind, uint32_t>> before;  // erases and puts after the load, by key number
  uint32_t inserted = 0;                            // then the put of this key …
  uint32_t moved = 0;                               // … moves this one
};

// For a table of all keys of a run with one server core. None: nothing of the kind was found.
inline std::optional<MovedKey> find_moved_key(uint32_t keys, uint32_t key_bytes, double load) {
  constexpr int kSteps = 20'000;
  constexpr uint32_t kValueBytes = 32;
  const bench::Keyspace space(keys, key_bytes);
  std::vector<std::byte> entries(CuckooTable::entries_for(keys, load) * sizeof(CuckooEntry));
  std::vector<std::byte> extents(CuckooTable::extent_bytes_for(keys, key_bytes + kValueBytes));
  CuckooTable table(entries, extents, nullptr);
  const std::string value(kValueBytes, 'v');
  const auto rank_of = [&](uint32_t key) { return table.walk(space.key(key), false).entries; };
  for (uint32_t key = 0; key < keys; ++key) {
    if (table.put(space.key(key), value) != Outcome::kDone) return std::nullopt;
  }
  MovedKey found;
  bench::Rng rng(1);
  for (int step = 0; step < kSteps; ++step) {
    const uint32_t key = rng.below(keys);
    if (table.erase(space.key(key)) == Outcome::kDone) {
      found.before.emplace_back(OpKind::kErase, key);
      continue;
    }
    std::vector<uint32_t> ranks;
    for (uint32_t other = 0; other < keys; ++other) ranks.push_back(rank_of(other));
    if (table.put(space.key(key), value) != Outcome::kDone) return std::nullopt;
    for (uint32_t other = 0; other < keys; ++other) {
      const bool is_there = other != key && table.get(space.key(other)).has_value();
      if (!is_there || ranks[other] == 1 || rank_of(other) != 1) continue;
      found.inserted = key;
      found.moved = other;
      return found;
    }
    found.before.emplace_back(OpKind::kPut, key);
  }
  return std::nullopt;
}

}  // namespace egret::bench_paradigms
