#include "op/stats.h"

namespace egret::op {

namespace {
constexpr StatMerge kSum = StatMerge::kSum;
constexpr StatMerge kMax = StatMerge::kMax;
constexpr StatMerge kMin = StatMerge::kMin;
constexpr StatInfo kTable[] = {
    {StatId::kCmdGet, "cmd_get", kSum, "keys asked for"},
    {StatId::kCmdSet, "cmd_set", kSum, "storage commands, whatever their outcome"},
    {StatId::kCmdFlush, "cmd_flush", kMax, "flush_all commands", kMax},
    {StatId::kCmdTouch, "cmd_touch", kSum, "touch, gat and gats keys"},
    {StatId::kCmdMeta, "cmd_meta", kSum, "meta commands"},
    {StatId::kGetHits, "get_hits", kSum, "keys found"},
    {StatId::kGetMisses, "get_misses", kSum, "keys not found"},
    {StatId::kGetExpired, "get_expired", kSum, "keys found but expired"},
    {StatId::kGetFlushed, "get_flushed", kSum, "keys found but hidden by flush_all"},
    {StatId::kDeleteMisses, "delete_misses", kSum, "deletes of missing keys"},
    {StatId::kDeleteHits, "delete_hits", kSum, "deletes that removed an item"},
    {StatId::kIncrMisses, "incr_misses", kSum, "incr of missing keys"},
    {StatId::kIncrHits, "incr_hits", kSum, "successful incr"},
    {StatId::kDecrMisses, "decr_misses", kSum, "decr of missing keys"},
    {StatId::kDecrHits, "decr_hits", kSum, "successful decr"},
    {StatId::kCasMisses, "cas_misses", kSum, "cas of missing keys"},
    {StatId::kCasHits, "cas_hits", kSum, "cas that stored"},
    {StatId::kCasBadval, "cas_badval", kSum, "cas whose value had changed"},
    {StatId::kTouchHits, "touch_hits", kSum, "keys touched"},
    {StatId::kTouchMisses, "touch_misses", kSum, "touches of missing keys"},
    {StatId::kStoreTooLarge, "store_too_large", kSum, "values refused because larger than item_size_max"},
    {StatId::kStoreNoMemory, "store_no_memory", kSum, "values refused because there was no room"},
    {StatId::kBytes, "bytes", kSum, "bytes that items take up, overhead included"},
    {StatId::kCurrItems, "curr_items", kSum, "items held"},
    {StatId::kTotalItems, "total_items", kSum, "items stored since start"},
    {StatId::kEvictions, "evictions", kSum, "live items removed to make room"},
    {StatId::kReclaimed, "reclaimed", kSum, "stores that took the place of an expired item"},
    {StatId::kExpiredUnfetched, "expired_unfetched", kSum, "items that expired without having been read"},
    {StatId::kEvictedUnfetched, "evicted_unfetched", kSum, "items evicted without having been read"},
    {StatId::kLimitMaxbytes, "limit_maxbytes", kSum, "the memory limit"},
    {StatId::kUptime, "uptime", kMax, "seconds since the backend started, of several the youngest", kMin},
    {StatId::kPid, "backend_pid", kMax, "process id of the backend, of several the largest", kMax},
    {StatId::kUserUsec, "rusage_user", kMax, "user CPU time of the backend, in microseconds"},
    {StatId::kSystemUsec, "rusage_system", kMax, "system CPU time of the backend, in microseconds"},
    {StatId::kItemSizeMax, "item_size_max", kMax, "largest item, as memcached counts it, that every backend takes",
     kMin},
    {StatId::kEvicts, "evictions_enabled", kMax, "1 if old items make room for new ones, in any backend", kMax},
    {StatId::kExpired, "expired", kSum, "items taken out because their time had come"},
    {StatId::kGhostHits, "ghost_hits", kSum, "stores of keys that had been evicted not long before"},
    {StatId::kCopiedBytes, "copied_bytes", kSum, "bytes that eviction and compaction have copied"},
    {StatId::kInsertedBytes, "inserted_bytes", kSum, "bytes that stores have written"},
    {StatId::kSegments, "segments", kSum, "pages of the log"},
    {StatId::kSegmentBytes, "segment_live_bytes", kSum, "live bytes in the log"},
    {StatId::kLargePages, "large_pages", kSum, "pages that hold parts of large values"},
    {StatId::kIndexPages, "index_pages", kSum, "pages of the index"},
    {StatId::kFreePages, "free_pages", kSum, "pages that hold nothing"},
    {StatId::kSweeps, "sweeps", kSum, "turns of the sweep for expired items"},
    {StatId::kStepsUnder1us, "steps_1us", kSum, "steps whose counted work is worth up to 1 us"},
    {StatId::kStepsUnder4us, "steps_4us", kSum, "steps worth up to 4 us"},
    {StatId::kStepsUnder16us, "steps_16us", kSum, "steps worth up to 16 us"},
    {StatId::kStepsUnder64us, "steps_64us", kSum, "steps worth up to 64 us"},
    {StatId::kStepsOver64us, "steps_over_64us", kSum, "steps worth more"},
};
}  // namespace

std::span<const StatInfo> stat_table() {
  return kTable;
}

bool is_level(StatId id) {
  switch (id) {
    case StatId::kBytes:
    case StatId::kCurrItems:
    case StatId::kLimitMaxbytes:
    case StatId::kUptime:
    case StatId::kPid:
    case StatId::kItemSizeMax:
    case StatId::kEvicts:
    case StatId::kSegments:
    case StatId::kSegmentBytes:
    case StatId::kLargePages:
    case StatId::kIndexPages:
    case StatId::kFreePages:
      return true;
    default:
      return false;
  }
}

}  // namespace egret::op
