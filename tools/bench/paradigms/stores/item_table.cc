#include "bench_paradigms/stores/item_table.h"

#include <bit>
#include <cstring>
#include <new>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

ItemTable::ItemTable(uint32_t items, uint32_t key_bytes, uint32_t value_bytes, bool wants_huge_pages)
    : key_bytes_(key_bytes),
      value_bytes_(value_bytes),
      mask_(std::bit_ceil(size_t{items} * 2 + 1) - 1),
      places_(mask_ + 1),
      sizes_(items),
      pages_(size_t{items} * (key_bytes + value_bytes), wants_huge_pages) {
  if (pages_.data() == nullptr) throw std::bad_alloc();
  free_.reserve(items);
  for (uint32_t item = items; item > 0; --item) free_.push_back(item - 1);
}

size_t ItemTable::place_of(std::string_view key) const {
  return hash_of(key) & mask_;  // the upper half chooses the partition
}

std::string_view ItemTable::key(uint32_t item) const {
  return {keys() + size_t{item} * key_bytes_, key_bytes_};
}

std::string_view ItemTable::value(uint32_t item) const {
  return {values() + size_t{item} * value_bytes_, sizes_[item]};
}

uint32_t ItemTable::find(std::string_view key) const {
  for (size_t at = place_of(key); places_[at] != 0; at = (at + 1) & mask_) {
    if (this->key(places_[at] - 1) == key) return places_[at] - 1;
  }
  return kNone;
}

uint32_t ItemTable::add(std::string_view key) {
  if (free_.empty() || key.size() != key_bytes_) return kNone;
  const uint32_t item = free_.back();
  free_.pop_back();
  std::memcpy(keys() + size_t{item} * key_bytes_, key.data(), key_bytes_);
  sizes_[item] = 0;
  size_t at = place_of(key);
  while (places_[at] != 0) at = (at + 1) & mask_;
  places_[at] = item + 1;
  return item;
}

// What follows in the same run moves up, where its own place allows it: no marks of erased ones are left.
void ItemTable::erase(uint32_t item) {
  size_t hole = place_of(key(item));
  while (places_[hole] != item + 1) hole = (hole + 1) & mask_;
  for (size_t at = (hole + 1) & mask_; places_[at] != 0; at = (at + 1) & mask_) {
    const size_t own = place_of(key(places_[at] - 1));
    if (((at - own) & mask_) < ((at - hole) & mask_)) continue;
    places_[hole] = places_[at];
    hole = at;
  }
  places_[hole] = 0;
  free_.push_back(item);
}

bool ItemTable::set_value(uint32_t item, std::string_view value) {
  if (value.size() > value_bytes_) return false;
  sizes_[item] = static_cast<uint32_t>(value.size());
  if (!value.empty()) std::memcpy(values() + size_t{item} * value_bytes_, value.data(), value.size());
  return true;
}

void ItemTable::prefetch(std::string_view key) const {
  __builtin_prefetch(&places_[place_of(key)]);
}

}  // namespace egret::bench_paradigms
