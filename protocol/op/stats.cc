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
};
}  // namespace

std::span<const StatInfo> stat_table() {
  return kTable;
}

}  // namespace egret::op
