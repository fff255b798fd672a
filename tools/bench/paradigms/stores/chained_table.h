// DrTM-KV's store as its public code lays it out: buckets with chains that clients READ, items that clients READ, lock and
// WRITE. Only the server inserts and erases.
//
//   bucket 136: │ next 8 │ 8 keys of 8 (hashes) │ 8 indexes of 8 (incarnation, number of the item + 1) │
//   item:       │ key │ version 4 │ incarnation 4 │ state 8 │ value │ version 4, 4 │     one line for a value of 32
//                                                                    └ values above 32 only, ours: a READ whose pieces
//                                                                      came out of order sees it
// state: upper half the incarnation, lower half who has locked the item (0: nobody, 1: the server, else a client), so a
// CAS of somebody who knows the item from before it was erased fails. Whoever changes a value gives it a version that is
// not used again soon. An index word is stored last by an insert and cleared first by an erase.
//
// Memory is the caller's: zeroed, and registered for remote READ (items: WRITE and atomics, too). Made once; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench_paradigms/node.h"
#include "bench_paradigms/stores/step_writer.h"

namespace egret::bench_paradigms {

inline constexpr uint32_t kBucketPlaces = 8;
// As it lies in memory.
struct ChainedBucket {
  uint64_t next = 0;  // number of the next bucket + 1
  uint64_t keys[kBucketPlaces] = {};
  uint64_t indexes[kBucketPlaces] = {};
};
static_assert(sizeof(ChainedBucket) == 136);

// Where an item is, and which one it is meant to be.
struct ItemPlace {
  uint32_t number = 0;
  uint32_t incarnation = 0;

  static ItemPlace from_index(uint64_t word) {
    return {static_cast<uint32_t>(word) - 1, static_cast<uint32_t>(word >> 32)};
  }
  uint64_t index() const { return uint64_t{incarnation} << 32 | (number + 1); }
  uint64_t state(uint32_t owner) const { return uint64_t{incarnation} << 32 | owner; }
};

// What clients must know, too.
struct ChainedShape {
  static constexpr uint32_t kOneLineValue = 32;

  uint32_t key_bytes = 16;
  uint32_t value_bytes = 32;
  uint32_t stride = 64;  // from item to item
  uint32_t items = 1;
  uint32_t buckets = 1;  // where chains begin
  uint32_t more_buckets = 1;

  static ChainedShape of(const Plan& plan, uint32_t keys);
  uint32_t head_bytes() const { return (key_bytes + 7) / 8 * 8; }  // before version
  uint32_t state_at() const { return head_bytes() + 8; }
  uint32_t value_at() const { return head_bytes() + 16; }
  bool has_tail() const { return value_bytes > kOneLineValue; }
  uint32_t tail_at() const { return (value_at() + value_bytes + 7) / 8 * 8; }
  uint32_t item_bytes() const { return has_tail() ? tail_at() + 8 : value_at() + value_bytes; }
  size_t items_bytes() const { return size_t{items} * stride; }
  size_t buckets_bytes() const { return size_t{buckets + more_buckets} * sizeof(ChainedBucket); }
  uint32_t bucket(uint64_t hash) const { return static_cast<uint32_t>((hash & 0xffffffffu) * buckets >> 32); }

  // Writes version, incarnation, state and all behind them, as a WRITE brings it to an item from head_bytes() on.
  void fill(std::byte* to, uint32_t version, uint64_t state, std::string_view value) const;
};

class ChainedTable {
 public:
  static constexpr uint32_t kServer = 1;  // owner of a lock

  ChainedTable(const ChainedShape& shape, std::span<std::byte> buckets, std::span<std::byte> items, const Pause* pause);

  // kDone; kHit: it is there already, nothing was changed; kFull.
  Outcome insert(std::string_view key, std::string_view value);
  // kDone; kMiss; kFull: it is locked now, nothing was changed.
  Outcome erase(std::string_view key);
  std::optional<std::string_view> get(std::string_view key) const;
  // Buckets that a reader READs until it has the key's index word, or knows that there is none.
  uint32_t walk(std::string_view key) const;

 private:
  struct Found {
    uint32_t bucket;
    uint32_t place;
  };
  ChainedBucket* bucket(uint64_t number) const { return reinterpret_cast<ChainedBucket*>(buckets_.data()) + number; }
  std::byte* item(uint32_t number) const { return items_.data() + size_t{number} * shape_.stride; }
  std::optional<Found> find(std::string_view key) const;
  std::optional<Found> empty_place(uint64_t hash);
  void store(uint64_t& word, uint64_t value) const;

  ChainedShape shape_;
  std::span<std::byte> buckets_;
  std::span<std::byte> items_;
  StepWriter writer_;
  std::vector<uint32_t> free_items_;
  std::vector<std::byte> scratch_;
  uint32_t used_more_buckets_ = 0;
};

}  // namespace egret::bench_paradigms
