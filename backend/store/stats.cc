// The store's counters as rows.
#include <algorithm>

#include "store/store.h"

namespace egret::store {

using op::ClassField;
using op::StatId;

void Store::append_stats(std::vector<op::StatRow>& rows, Since since) const {
  const auto log_pages = pages_.count(PageUse::kSmall) + pages_.count(PageUse::kMain);
  for (const op::StatInfo& info : op::stat_table()) {
    uint64_t value = since == Since::kStart ? counters_.lifetime(info.id) : counters_[info.id];
    switch (info.id) {
      case StatId::kUptime:
      case StatId::kPid:
      case StatId::kUserUsec:
      case StatId::kSystemUsec:
        continue;  // the process's, not the store's
      case StatId::kLimitMaxbytes:
        value = limit_;
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
        value = log_.live_bytes();
        break;
      case StatId::kLargePages:
        value = pages_.count(PageUse::kLarge) + pages_.count(PageUse::kChunks);
        break;
      case StatId::kIndexPages:
        value = pages_.count(PageUse::kIndex);
        break;
      case StatId::kFreePages:
        value = pages_.free_count();
        break;
      default:
        break;
    }
    rows.push_back({static_cast<uint32_t>(info.id), 0, value});
  }
}

void Store::append_class_stats(std::vector<op::StatRow>& rows) const {
  const uint32_t oldest = log_.oldest_access();
  const uint64_t age = oldest != 0 ? now_ - std::min(now_, oldest) : 0;
  for (uint32_t i = 0; i < op::kSizeClasses; ++i) {
    const Counters::Class& its = counters_.classes[i];
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
  counters_.reset();
}

}  // namespace egret::store
