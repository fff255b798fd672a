// What memcached would do at its best, as the control of a replay: one LRU list over all items, each taking up the
// chunk that memcached's slab classes give it, as if pages moved between classes at no cost and expired items were
// taken out the second they expire. Only names and sizes, no values. The hash table, which memcached does not count
// in its limit either, is not counted.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace egret::bench_store {

// Bytes of the chunk that holds an item of this key and value: growth factor 1.25 from 96 bytes.
uint32_t memcached_chunk(uint32_t key_length, uint32_t value_length);

class LruModel {
 public:
  // Keys are 0..keys-1.
  LruModel(uint64_t limit_bytes, uint32_t keys) : limit_(limit_bytes), items_(keys + 1) {}

  // Takes out what expires at or before `second`. Seconds do not go back.
  void advance(int64_t second);
  bool get(uint32_t key);
  // expires_at 0: never.
  void set(uint32_t key, uint32_t bytes, int64_t expires_at);
  uint64_t item_count() const { return count_; }

 private:
  struct Item {
    uint32_t next = 0;
    uint32_t previous = 0;
    uint32_t bytes = 0;  // 0: not held
    int64_t expires_at = 0;
  };
  // Item 0 is the list's ends: next is the most recently used. Key k is item k + 1.
  void link_first(uint32_t index);
  void unlink(uint32_t index);
  void remove(uint32_t index);

  const uint64_t limit_;
  uint64_t used_ = 0;
  uint64_t count_ = 0;
  int64_t second_ = 0;
  std::vector<Item> items_;
  std::unordered_map<int64_t, std::vector<uint32_t>> due_;  // second → items that may expire then
};

}  // namespace egret::bench_store
