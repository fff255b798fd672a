#include "bench_store/lru.h"

#include "op/item_size.h"

namespace egret::bench_store {

uint32_t memcached_chunk(uint32_t key_length, uint32_t value_length) {
  const uint64_t item = op::memcached_item_size(key_length, 0, value_length);
  uint64_t chunk = 96;
  while (chunk < item) chunk = (static_cast<uint64_t>(static_cast<double>(chunk) * 1.25) + 7) / 8 * 8;
  return static_cast<uint32_t>(chunk);
}

void LruModel::link_first(uint32_t index) {
  Item& item = items_[index];
  item.previous = 0;
  item.next = items_[0].next;
  items_[item.next].previous = index;
  items_[0].next = index;
}

void LruModel::unlink(uint32_t index) {
  const Item& item = items_[index];
  items_[item.previous].next = item.next;
  items_[item.next].previous = item.previous;
}

void LruModel::remove(uint32_t index) {
  unlink(index);
  used_ -= items_[index].bytes;
  items_[index].bytes = 0;
  --count_;
}

void LruModel::advance(int64_t second) {
  if (second_ == 0) second_ = second;
  for (; second_ <= second; ++second_) {
    const auto due = due_.find(second_);
    if (due == due_.end()) continue;
    for (const uint32_t index : due->second) {
      if (items_[index].bytes != 0 && items_[index].expires_at == second_) remove(index);
    }
    due_.erase(due);
  }
}

bool LruModel::get(uint32_t key) {
  if (items_[key + 1].bytes == 0) return false;
  unlink(key + 1);
  link_first(key + 1);
  return true;
}

void LruModel::set(uint32_t key, uint32_t bytes, int64_t expires_at) {
  const uint32_t index = key + 1;
  if (items_[index].bytes != 0) remove(index);
  while (used_ + bytes > limit_ && count_ > 0) remove(items_[0].previous);
  if (used_ + bytes > limit_) return;
  items_[index].bytes = bytes;
  items_[index].expires_at = expires_at;
  used_ += bytes;
  ++count_;
  link_first(index);
  if (expires_at != 0) due_[expires_at].push_back(index);
}

}  // namespace egret::bench_store
