// The counters of the store, as rows: one table gives their wire number, memcached's name, how partitions are put
// together and what they mean. A Stats result's value is a sequence of StatRow, little-endian; unknown ids are passed
// over, so either side may be newer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace egret::op {

enum class StatGroup : uint8_t { kGeneral = 0 };

// Wire format: never renumber.
enum class StatId : uint32_t {
  kCmdGet = 1,
  kCmdSet,
  kCmdFlush,
  kCmdTouch,
  kCmdMeta,
  kGetHits,
  kGetMisses,
  kGetExpired,
  kGetFlushed,
  kDeleteMisses,
  kDeleteHits,
  kIncrMisses,
  kIncrHits,
  kDecrMisses,
  kDecrHits,
  kCasMisses,
  kCasHits,
  kCasBadval,
  kTouchHits,
  kTouchMisses,
  kStoreTooLarge,
  kStoreNoMemory,
  kBytes,
  kCurrItems,
  kTotalItems,
  kEvictions,
  kReclaimed,
  kExpiredUnfetched,
  kEvictedUnfetched,
  kLimitMaxbytes,
  kUptime,
  kPid,
  kUserUsec,
  kSystemUsec,
  kItemSizeMax,
  kEvicts,
};

enum class StatMerge : uint8_t { kSum, kMax, kMin };

struct StatInfo {
  StatId id;
  std::string_view name;  // as memcached prints it
  StatMerge merge;        // over the partitions of a backend
  std::string_view help;
  StatMerge over_backends = StatMerge::kSum;
};

struct StatRow {
  uint32_t id;
  uint32_t reserved;
  uint64_t value;
};
static_assert(sizeof(StatRow) == 16);

// All rows, in the order of StatId.
std::span<const StatInfo> stat_table();

}  // namespace egret::op
