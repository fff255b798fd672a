#include "bench_paradigms/stores/cas/entry_cache.h"

#include <bit>
#include <cstring>

#include "bench/sampler.h"

namespace egret::bench_paradigms {

EntryCache::EntryCache(uint32_t copies, uint32_t entry_bytes)
    : entry_bytes_(entry_bytes),
      copies_(copies),
      bytes_(size_t{copies} * entry_bytes),
      buckets_(std::bit_ceil(copies * 2 + 1), kNone) {}

uint32_t& EntryCache::bucket_of(const Tag& tag) {
  return buckets_[bench::mix64(tag.word ^ bench::mix64(tag.slot)) & (buckets_.size() - 1)];
}

const std::byte* EntryCache::find(const Tag& tag) {
  for (uint32_t copy = bucket_of(tag); copy != kNone; copy = copies_[copy].next_in_bucket) {
    if (!(copies_[copy].tag == tag)) continue;
    unlink(copy);
    make_newest(copy);
    return bytes_.data() + size_t{copy} * entry_bytes_;
  }
  return nullptr;
}

void EntryCache::add(const Tag& tag, const std::byte* entry) {
  if (copies_.empty() || find(tag) != nullptr) return;
  const uint32_t copy = make_room();
  uint32_t& bucket = bucket_of(tag);
  copies_[copy].tag = tag;
  copies_[copy].next_in_bucket = bucket;
  bucket = copy;
  make_newest(copy);
  std::memcpy(bytes_.data() + size_t{copy} * entry_bytes_, entry, entry_bytes_);
}

uint32_t EntryCache::make_room() {
  if (used_ < copies_.size()) return used_++;
  const uint32_t copy = oldest_;
  unlink(copy);
  uint32_t* at = &bucket_of(copies_[copy].tag);
  while (*at != copy) at = &copies_[*at].next_in_bucket;
  *at = copies_[copy].next_in_bucket;
  return copy;
}

void EntryCache::unlink(uint32_t copy) {
  const Copy& gone = copies_[copy];
  (gone.newer == kNone ? newest_ : copies_[gone.newer].older) = gone.older;
  (gone.older == kNone ? oldest_ : copies_[gone.older].newer) = gone.newer;
}

void EntryCache::make_newest(uint32_t copy) {
  copies_[copy].newer = kNone;
  copies_[copy].older = newest_;
  (newest_ == kNone ? oldest_ : copies_[newest_].newer) = copy;
  newest_ = copy;
}

}  // namespace egret::bench_paradigms
