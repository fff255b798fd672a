// The purge: a cursor over the index's buckets that removes what another member of the pool owns. A bucket's items move
// only to later buckets, when the index grows, so each item that was there at the start is seen.
#include <algorithm>
#include <utility>

#include "store/upkeep/purger.h"

namespace egret::store {

namespace {
constexpr uint32_t kGroup = 4;          // buckets whose items are prefetched together
constexpr uint64_t kOwnerBytes = 3200;  // finding a key's owner takes as long as copying this many bytes: 0.4 us
// Of large items, no more in one step: freeing one of them may take half as long.
constexpr uint64_t kMostExtents = 4096;
}  // namespace

void Purger::start(Keeps keeps, uint64_t membership) {
  keeps_ = std::move(keeps);
  membership_then_ = membership;
  before_ = items_.version;
  bucket_ = 0;
}

bool Purger::step(uint64_t most_ns) {
  if (before_ == 0) return false;
  const uint64_t end = items_.work.ns() + most_ns;
  bool goes_on = true;
  while (goes_on && bucket_ < items_.index.bucket_count() && items_.work.ns() < end) {
    const uint32_t group_end = std::min(items_.index.bucket_count(), bucket_ + kGroup);
    for (uint32_t i = group_end; i < std::min(items_.index.bucket_count(), group_end + kGroup); ++i)
      items_.index.prefetch_bucket(i);
    for (uint32_t i = bucket_; i < group_end; ++i) items_.index.prefetch_items(i);
    while (goes_on && bucket_ < group_end) {
      goes_on = purge_bucket();
      if (goes_on) ++bucket_;
    }
  }
  if (goes_on && bucket_ >= items_.index.bucket_count()) {
    membership_ = membership_then_;
    before_ = 0;
    keeps_ = nullptr;
  }
  return true;
}

void Purger::step_alone() {
  if (step(kIdleWork)) items_.end_step();
}

void Purger::remove_older(std::string_view key, uint64_t hash, uint64_t version) {
  const Slot slot = items_.index.find(key, hash);
  if (slot && items_.item(slot).version() < version) items_.remove(slot, hash);
}

// False: this step has freed enough, and the bucket is not done.
bool Purger::purge_bucket() {
  uint64_t extents = 0;
  items_.work.buckets(1);
  items_.index.visit_bucket(bucket_, [&](Slot slot) {
    const Item& it = items_.item(slot);
    items_.work.records(1);
    if (it.version() >= before_ || extents > kMostExtents / 2) return false;
    if (keeps_ != nullptr) {
      items_.work.bytes(kOwnerBytes);
      if (keeps_(it.key())) return false;
    }
    if (it.has(kLarge)) extents += large_head(it).extents;
    ++removed_;
    items_.remove(slot, items_.index.hash_of(it));
    return true;
  });
  return extents <= kMostExtents / 2;
}

}  // namespace egret::store
