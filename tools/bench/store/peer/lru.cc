#include "bench_store/peer/lru.h"

#include "op/item_size.h"

namespace egret::bench_store {
namespace {

// memcached's defaults: hot_lru_pct, warm_lru_pct, hot_max_factor, warm_max_factor.
constexpr uint64_t kHotPercent = 20;
constexpr uint64_t kWarmPercent = 40;
constexpr double kHotAge = 0.2;
constexpr double kWarmAge = 2;

}  // namespace

uint32_t memcached_chunk(uint32_t key_length, uint32_t value_length) {
  const uint64_t item = op::memcached_item_size(key_length, 0, value_length);
  uint64_t chunk = 96;
  while (chunk < item) chunk = (static_cast<uint64_t>(static_cast<double>(chunk) * 1.25) + 7) / 8 * 8;
  return static_cast<uint32_t>(chunk);
}

LruModel::LruModel(uint64_t limit_bytes, uint32_t keys) : limit_(limit_bytes), items_(keys + kLists) {
  for (uint32_t list = 0; list < kLists; ++list) items_[list].next = items_[list].previous = list;
}

void LruModel::link_first(uint32_t index, List list) {
  Item& item = items_[index];
  item.list = list;
  item.active = false;
  item.previous = list;
  item.next = items_[list].next;
  items_[item.next].previous = index;
  items_[list].next = index;
  used_[list] += item.bytes;
}

void LruModel::unlink(uint32_t index) {
  const Item& item = items_[index];
  items_[item.previous].next = item.next;
  items_[item.next].previous = item.previous;
  used_[item.list] -= item.bytes;
}

void LruModel::remove(uint32_t index) {
  unlink(index);
  items_[index].bytes = 0;
  --count_;
}

void LruModel::move(uint32_t index, List list) {
  unlink(index);
  link_first(index, list);
}

void LruModel::advance(int64_t second) {
  if (second_ == 0) second_ = second - 1;
  for (; second_ < second; ++second_) {
    const auto due = due_.find(second_ + 1);
    if (due == due_.end()) continue;
    for (const uint32_t index : due->second) {
      if (items_[index].bytes != 0 && items_[index].expires_at == second_ + 1) remove(index);
    }
    due_.erase(due);
  }
}

bool LruModel::get(uint32_t key) {
  const uint32_t index = key + kLists;
  Item& item = items_[index];
  if (item.bytes == 0) return false;
  if (item.active) return true;
  if (!item.fetched) {
    item.fetched = true;
    return true;
  }
  item.read_at = second_;
  if (item.list == kCold) {
    move(index, kWarm);
    balance();
  } else {
    item.active = true;
  }
  return true;
}

void LruModel::set(uint32_t key, uint32_t bytes, int64_t expires_at) {
  const uint32_t index = key + kLists;
  if (items_[index].bytes != 0) remove(index);
  while (used() + bytes > limit_ && count_ > 0) {
    if (used_[kCold] != 0)
      remove(items_[kCold].previous);
    else if (!pull_tail(kHot, 0, 0))
      pull_tail(kWarm, 0, 0);
  }
  if (used() + bytes > limit_) return;
  Item& item = items_[index];
  item.bytes = bytes;
  item.expires_at = expires_at;
  item.read_at = second_;
  item.fetched = false;
  ++count_;
  link_first(index, kHot);
  if (expires_at != 0) due_[expires_at].push_back(index);
  balance();
}

// Hot and warm give up their oldest while they are too large, or those too old beside the oldest cold one.
void LruModel::balance() {
  const uint32_t coldest = items_[kCold].previous;
  const auto cold_age = static_cast<double>(coldest == kCold ? 0 : second_ - items_[coldest].read_at);
  const auto oldest = [&](double factor) { return second_ - static_cast<int64_t>(cold_age * factor); };
  while (pull_tail(kHot, used() * kHotPercent / 100, oldest(kHotAge))) {
  }
  while (pull_tail(kWarm, used() * kWarmPercent / 100, oldest(kWarmAge))) {
  }
}

// Moves the oldest item on if the list is larger than `limit` or the item older than `oldest`. An active one gets
// another turn in kWarm. False: nothing to do.
bool LruModel::pull_tail(List list, uint64_t limit, int64_t oldest) {
  const uint32_t index = items_[list].previous;
  if (index == list) return false;
  if (used_[list] <= limit && items_[index].read_at >= oldest) return false;
  move(index, items_[index].active ? kWarm : kCold);
  return true;
}

}  // namespace egret::bench_store
