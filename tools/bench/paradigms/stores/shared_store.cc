#include "bench_paradigms/stores/shared_store.h"

#include <cstring>

namespace egret::bench_paradigms {

SharedStore::SharedStore(uint32_t items, uint32_t key_bytes, uint32_t value_bytes, bool wants_huge_pages)
    : table_(items, key_bytes, value_bytes, wants_huge_pages), links_(items) {}

void SharedStore::unlink(uint32_t item) {
  const Link link = links_[item];
  (link.newer == ItemTable::kNone ? newest_ : links_[link.newer].older) = link.older;
  (link.older == ItemTable::kNone ? oldest_ : links_[link.older].newer) = link.newer;
}

void SharedStore::link_newest(uint32_t item) {
  links_[item] = {ItemTable::kNone, newest_};
  (newest_ == ItemTable::kNone ? oldest_ : links_[newest_].newer) = item;
  newest_ = item;
}

std::optional<uint32_t> SharedStore::get(std::string_view key, std::span<std::byte> to) {
  const std::lock_guard lock(mutex_);
  const uint32_t item = table_.find(key);
  if (item == ItemTable::kNone) return std::nullopt;
  unlink(item);
  link_newest(item);
  const std::string_view value = table_.value(item);
  std::memcpy(to.data(), value.data(), value.size());
  return static_cast<uint32_t>(value.size());
}

bool SharedStore::put(std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  uint32_t item = table_.find(key);
  if (item != ItemTable::kNone) {
    unlink(item);
  } else {
    if (table_.is_full() && oldest_ != ItemTable::kNone) {
      const uint32_t last = oldest_;
      unlink(last);
      table_.erase(last);
    }
    item = table_.add(key);
    if (item == ItemTable::kNone) return false;
  }
  link_newest(item);
  return table_.set_value(item, value);
}

bool SharedStore::erase(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const uint32_t item = table_.find(key);
  if (item == ItemTable::kNone) return false;
  unlink(item);
  table_.erase(item);
  return true;
}

}  // namespace egret::bench_paradigms
