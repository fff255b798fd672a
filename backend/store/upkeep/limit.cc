// A memory limit that changes while the store serves.
//
//   lower:  pages that become free are withheld from use, and their memory goes back to the system; if too few become
//           free, step() drains some records in every pass
//   higher: withheld pages are used again, in the same steps; above the limit at the start, unused pages are added at
//           once, if the arena has address space for them
//
// Neither the index nor the fixed part shrinks: a limit that leaves too little besides them is refused. Without
// eviction, items over the limit stay until they are deleted or expire, and nothing new can be stored meanwhile.
#include <algorithm>

#include "store/upkeep/memory_limit.h"

namespace egret::store {

namespace {
constexpr uint32_t kPagesInAStep = 8;
constexpr uint32_t kReclaimInAStep = 1024;  // units
}  // namespace

MemoryLimit::MemoryLimit(const StoreConfig& config, const Layout& layout, Arena& arena, Items& items,
                         Reclaimer& reclaimer)
    : item_size_max_(config.item_size_max),
      layout_(layout),
      arena_(arena),
      items_(items),
      reclaimer_(reclaimer),
      bytes_(config.memory_limit),
      pages_counted_(layout.start) {
  choose_targets();
}

uint64_t MemoryLimit::least() const {
  const uint64_t kept = uint64_t{layout_.fixed_of(pages_counted_)} + items_.pages.count(PageUse::kIndex);
  return std::max(least_memory(item_size_max_), (kept + kLeastPages) * kPageSize + item_size_max_);
}

op::ResultCode MemoryLimit::set(uint64_t bytes) {
  if (bytes < least() || bytes / kPageSize > layout_.most) return op::ResultCode::kOutOfMemory;
  if (bytes == bytes_) return op::ResultCode::kOk;
  bytes_ = bytes;
  const auto pages = static_cast<PageNumber>(bytes / kPageSize);
  if (pages > pages_counted_) {
    // The fixed pages that now count come out of the pages that are added.
    items_.pages.extend(pages - pages_counted_ - (layout_.fixed_of(pages) - layout_.fixed_of(pages_counted_)));
    pages_counted_ = pages;
  }
  to_withhold_ = pages_counted_ - pages;
  arena_.keep_huge(to_withhold_ == 0);
  choose_targets();
  return op::ResultCode::kOk;
}

void MemoryLimit::choose_targets() {
  reclaimer_.set_usable_pages(static_cast<uint32_t>(bytes_ / kPageSize) - layout_.fixed_of(pages_counted_));
}

uint32_t MemoryLimit::pages_over() const {
  return to_withhold_ - std::min(to_withhold_, items_.pages.withheld());
}

bool MemoryLimit::step() {
  const uint32_t before = items_.pages.withheld();
  if (before == to_withhold_) return false;
  if (before > to_withhold_) {
    take_back(std::min(before - to_withhold_, kPagesInAStep));
    return true;
  }
  // Pinned values cannot be evicted. If they take more than half of the limit, fewer pages are withheld, so that other items
  // keep half of it.
  const uint64_t pinned = items_.pins.charged(PinUse::kRead) + items_.pins.charged(PinUse::kLend);
  const auto for_pins = static_cast<uint32_t>((pinned - std::min(pinned, bytes_ / 2)) / kPageSize);
  const uint32_t now = to_withhold_ - std::min(to_withhold_, for_pins);
  if (before >= now) return false;
  const bool reclaimed = reclaimer_.needs_pages() && reclaimer_.reclaim(kReclaimInAStep) > 0;
  for (uint32_t i = 0;
       i < kPagesInAStep && items_.pages.withheld() < now && items_.pages.free_count() > reclaimer_.reserve() + 1;
       ++i) {
    arena_.release(items_.pages.withhold() * kPageSize, kPageSize);
    items_.work.released();
  }
  return reclaimed || items_.pages.withheld() > before;
}

void MemoryLimit::take_back(uint32_t pages) {
  for (; pages > 0; --pages) {
    // The file system may have given the room to others: then the store stays at its present size.
    if (!arena_.take_back(items_.pages.first_withheld() * kPageSize, kPageSize)) {
      to_withhold_ = items_.pages.withheld();
      bytes_ = uint64_t{pages_counted_ - to_withhold_} * kPageSize;
      return choose_targets();
    }
    items_.pages.take_back();
    items_.work.released();
  }
}

}  // namespace egret::store
