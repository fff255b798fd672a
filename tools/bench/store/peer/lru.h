// An ideal memcached, for comparison in a replay: its segmented LRU (hot, warm and cold lists with the default shares
// and ages); each item takes the chunk that memcached's slab classes give it. Unlike the real one, all classes share
// one set of lists, as if pages moved between classes at no cost; the lists are balanced after every request; and items
// are removed in the second in which they expire. Keeps keys and sizes, no values. As in memcached, the limit does not
// include the hash table.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace egret::bench_store {

// Bytes of the chunk that holds an item of this key and value: growth factor 1.25 from 96 bytes.
uint32_t memcached_chunk(uint32_t key_length, uint32_t value_length);

class LruModel {
 public:
  // Keys are 0..keys-1.
  LruModel(uint64_t limit_bytes, uint32_t keys);

  // Takes out what expires at or before `second`. Seconds do not go back.
  void advance(int64_t second);
  bool get(uint32_t key);
  // expires_at 0: never.
  void set(uint32_t key, uint32_t bytes, int64_t expires_at);
  uint64_t item_count() const { return count_; }

 private:
  // New items come into kHot; read twice, they leave it for kWarm, else for kCold, where they are evicted, or read
  // again and brought to kWarm.
  enum List : uint8_t { kHot, kWarm, kCold, kLists };
  struct Item {
    uint32_t next = 0;
    uint32_t previous = 0;
    uint32_t bytes = 0;  // 0: not held
    List list = kHot;
    bool fetched = false;  // read once
    bool active = false;   // and again, since it came into its list
    int64_t read_at = 0;
    int64_t expires_at = 0;
  };
  // Items 0..2 are the ends of the lists: next is the newest. Key k is item k + kLists.
  void link_first(uint32_t index, List list);
  void unlink(uint32_t index);
  void remove(uint32_t index);
  void move(uint32_t index, List list);
  void balance();
  bool pull_tail(List list, uint64_t limit, int64_t oldest);
  uint64_t used() const { return used_[kHot] + used_[kWarm] + used_[kCold]; }

  const uint64_t limit_;
  std::array<uint64_t, kLists> used_{};  // bytes
  uint64_t count_ = 0;
  int64_t second_ = 0;
  std::vector<Item> items_;
  std::unordered_map<int64_t, std::vector<uint32_t>> due_;  // second → items that may expire then
};

}  // namespace egret::bench_store
