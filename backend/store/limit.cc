// A memory limit that changes while the store serves.
//
//   lower:  pages are withheld from use, as they become free, and their memory goes back to the system; what does not
//           become free by itself is drained, some records in every pass (adjust_some)
//   higher: what was withheld comes back, in the same steps; above what the store began with, pages never used before
//           are added at once, if the arena has addresses for them
//
// The index does not shrink, nor what is fixed: a limit that leaves too little besides is refused. Where nothing may be
// evicted, what is over the limit stays until it is deleted or expires, and nothing new finds room.
#include <algorithm>

#include "store/answer.h"
#include "store/store.h"
#include "store/superblock.h"

namespace egret::store {

namespace {
constexpr uint32_t kPagesInAStep = 8;
constexpr uint32_t kReclaimInAStep = 1024;  // units
}  // namespace

uint64_t Store::least_limit() const {
  const uint64_t kept = uint64_t{layout_.fixed_of(pages_counted_)} + pages_.count(PageUse::kIndex);
  return std::max(least_memory(config_.item_size_max), (kept + kLeastPages) * kPageSize + config_.item_size_max);
}

uint64_t Store::most_limit() const {
  return uint64_t{layout_.most} * kPageSize;
}

op::ResultCode Store::set_memory_limit(uint64_t bytes) {
  EGRET_ASSERT_OWNER(owner_);
  if (bytes < least_limit() || bytes / kPageSize > layout_.most) return op::ResultCode::kOutOfMemory;
  if (bytes == limit_) return op::ResultCode::kOk;
  limit_ = bytes;
  const auto pages = static_cast<PageNumber>(bytes / kPageSize);
  if (pages > pages_counted_) {
    // Their part of the table comes out of what is added.
    pages_.extend(pages - pages_counted_ - (layout_.fixed_of(pages) - layout_.fixed_of(pages_counted_)));
    pages_counted_ = pages;
  }
  to_withhold_ = pages_counted_ - pages;
  arena_.keep_huge(to_withhold_ == 0);
  choose_targets();
  return op::ResultCode::kOk;
}

// Free pages to have at hand, by what there is in all.
void Store::choose_targets() {
  const auto usable = static_cast<uint32_t>(limit_ / kPageSize) - layout_.fixed_of(pages_counted_);
  reserve_ = usable >= 64 ? 2 : 1;
  free_target_ = reserve_ + std::clamp(usable / 256, 2u, 16u);
}

// A step towards the limit. False: there is nothing to do, or nothing that can be done at present.
bool Store::adjust_some() {
  const uint32_t before = pages_.withheld();
  if (before == to_withhold_) return false;
  if (before > to_withhold_) {
    take_back(std::min(before - to_withhold_, kPagesInAStep));
    return true;
  }
  const bool reclaimed = pages_.free_count() < free_target_ && reclaim(kReclaimInAStep) > 0;
  for (uint32_t i = 0; i < kPagesInAStep && pages_.withheld() < to_withhold_ && pages_.free_count() > reserve_ + 1;
       ++i) {
    arena_.release(pages_.withhold() * kPageSize, kPageSize);
    work_.released();
  }
  return reclaimed || pages_.withheld() > before;
}

void Store::take_back(uint32_t pages) {
  for (; pages > 0; --pages) {
    // A file system may have given the room to others: then it stays at what there is.
    if (!arena_.take_back(pages_.first_withheld() * kPageSize, kPageSize)) {
      to_withhold_ = pages_.withheld();
      limit_ = uint64_t{pages_counted_ - to_withhold_} * kPageSize;
      return choose_targets();
    }
    pages_.take_back();
    work_.released();
  }
}

}  // namespace egret::store
