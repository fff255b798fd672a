// The store's counters as rows.
#include <algorithm>

#include "store/store.h"

namespace egret::store {

using op::ClassField;
using op::StatId;

void Store::append_stats(op::StatGroup group, std::vector<op::StatRow>& rows, Since since) const {
  if (group == op::StatGroup::kSizeClasses) return append_class_stats(rows);
  const auto log_pages = items_.pages.count(PageUse::kSmall) + items_.pages.count(PageUse::kMain);
  for (const op::StatInfo& info : op::stat_table()) {
    uint64_t value = since == Since::kStart ? items_.counters.lifetime(info.id) : items_.counters[info.id];
    switch (info.id) {
      case StatId::kUptime:
      case StatId::kPid:
      case StatId::kUserUsec:
      case StatId::kSystemUsec:
        continue;  // the process counts this one
      case StatId::kLimitMaxbytes:
        value = limit_.bytes();
        break;
      case StatId::kItemSizeMax:
        value = config_.item_size_max;
        break;
      case StatId::kEvicts:
        value = config_.evict ? 1 : 0;
        break;
      case StatId::kSegments:
        value = log_pages;
        break;
      case StatId::kSegmentBytes:
        value = items_.log.state().live_units * kUnit;
        break;
      case StatId::kLargePages:
        value = items_.pages.count(PageUse::kLarge) + items_.pages.count(PageUse::kChunks);
        break;
      case StatId::kIndexPages:
        value = items_.pages.count(PageUse::kIndex);
        break;
      case StatId::kFreePages:
        value = items_.pages.free_count();
        break;
      default:
        break;
    }
    rows.push_back({static_cast<uint32_t>(info.id), 0, value});
  }
}

void Store::append_class_stats(std::vector<op::StatRow>& rows) const {
  const uint32_t oldest = items_.log.oldest_access();
  const uint64_t age = oldest != 0 ? items_.now - std::min(items_.now, oldest) : 0;
  for (uint32_t i = 0; i < op::kSizeClasses; ++i) {
    const Counters::Class& its = items_.counters.classes[i];
    if (its.number == 0 && its.evicted == 0 && its.reclaimed == 0 && its.out_of_memory == 0) continue;
    const auto add = [&](ClassField field, uint64_t value) {
      rows.push_back({i << 8 | static_cast<uint32_t>(field), 0, value});
    };
    add(ClassField::kNumber, its.number);
    add(ClassField::kBytes, its.bytes);
    add(ClassField::kEvicted, its.evicted);
    add(ClassField::kEvictedNonzero, its.evicted_nonzero);
    add(ClassField::kEvictedTime, its.evicted_time);
    add(ClassField::kEvictedUnfetched, its.evicted_unfetched);
    add(ClassField::kEvictedActive, its.evicted_active);
    add(ClassField::kExpiredUnfetched, its.expired_unfetched);
    add(ClassField::kReclaimed, its.reclaimed);
    add(ClassField::kOutOfMemory, its.out_of_memory);
    add(ClassField::kAge, age);
  }
}

void Store::reset_stats() {
  items_.counters.reset();
}

}  // namespace egret::store
