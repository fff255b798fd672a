// Items of one size class, found by key: linear probing over numbers of items, twice as many places as items. All memory
// is made at the start. One thread's, or behind its owner's lock.
//
//   places: 0 or item + 1, by hash    items: key, size, value; free ones in a list
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bench_paradigms/fabric/pages.h"

namespace egret::bench_paradigms {

class ItemTable {
 public:
  static constexpr uint32_t kNone = ~0u;

  ItemTable(uint32_t items, uint32_t key_bytes, uint32_t value_bytes, bool wants_huge_pages);

  uint32_t find(std::string_view key) const;  // the item, or kNone
  uint32_t add(std::string_view key);         // of a key that is not there, with an empty value; kNone: no item is free
  void erase(uint32_t item);
  std::string_view key(uint32_t item) const;
  std::string_view value(uint32_t item) const;
  bool set_value(uint32_t item, std::string_view value);  // false: longer than value_bytes
  bool is_full() const { return free_.empty(); }
  void prefetch(std::string_view key) const;

 private:
  size_t place_of(std::string_view key) const;

  uint32_t key_bytes_;
  uint32_t value_bytes_;
  size_t mask_;
  std::vector<uint32_t> places_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> sizes_;
  char* keys() const { return reinterpret_cast<char*>(pages_.data()); }
  char* values() const { return keys() + key_bytes_ * sizes_.size(); }
  Pages pages_;  // all keys, then all values
};

}  // namespace egret::bench_paradigms
