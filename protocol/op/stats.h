// The counters of the store, as a table: wire number, memcached's name, how values of several partitions are merged,
// and meaning. The value of a Stats result is a sequence of StatRow, little-endian. A reader ignores unknown ids, so
// either side may be newer.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace egret::op {

enum class StatGroup : uint8_t {
  kGeneral = 0,
  kSizeClasses = 1,  // a row per ClassField of every size class that holds or held items: id = class << 8 | field
};

// Size classes, for `stats items`, `stats slabs` and `stats sizes`: four for each power of two of the bytes that an
// item takes up in all. Class n holds sizes above class_size(n - 1), up to class_size(n).
inline constexpr uint32_t kSizeClasses = 96;
// The highest bit of the size gives the power of two, the next two bits the quarter.
constexpr uint32_t size_class_of(uint64_t bytes) {
  const uint64_t last = bytes < 32 ? 31 : bytes - 1;
  const auto power = static_cast<uint32_t>(std::bit_width(last)) - 1;  // at least 4
  const auto wanted = static_cast<uint32_t>((power - 4) * 4 + (last >> (power - 2) & 3));
  return wanted < kSizeClasses ? wanted : kSizeClasses - 1;
}
constexpr uint64_t class_size(uint32_t size_class) {
  const uint32_t power = size_class / 4 + 4;
  return (uint64_t{1} << power) + (uint64_t{size_class % 4 + 1} << (power - 2));
}
// The number that operators see, from 1 on as in memcached.
constexpr uint32_t shown_class(uint32_t size_class) {
  return size_class + 1;
}
// The approximate class of an item of which only these lengths are known; the store may need a few bytes more.
constexpr uint32_t shown_class_of(uint64_t key_length, uint64_t value_length) {
  constexpr uint64_t kHead = 16;
  return shown_class(size_class_of(kHead + key_length + value_length));
}
static_assert(class_size(size_class_of(64)) == 64 && class_size(size_class_of(65)) == 80);

// Wire format: never renumber.
enum class ClassField : uint8_t {
  kNumber = 1,  // items
  kBytes,       // memory of these items
  kEvicted,
  kEvictedNonzero,  // evicted items that had an exptime
  kEvictedTime,     // seconds between the last access and the eviction of the item evicted last
  kEvictedUnfetched,
  kEvictedActive,  // evicted items that were read more than once since they were stored
  kExpiredUnfetched,
  kReclaimed,
  kOutOfMemory,
  kAge,  // seconds since the oldest item was last accessed
};
inline constexpr uint32_t kClassFields = 12;  // above the highest ClassField
constexpr uint32_t class_row_id(uint32_t size_class, ClassField field) {
  return size_class << 8 | static_cast<uint32_t>(field);
}

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
  kExpired,        // expired items removed, by an access, by reclaiming or by the sweep
  kGhostHits,      // stores of keys that were evicted recently
  kCopiedBytes,    // bytes moved by eviction and compaction
  kInsertedBytes,  // bytes written by stores
  kSegments,       // pages of the log
  kSegmentBytes,   // live bytes in the log
  kLargePages,     // pages that hold parts of large values
  kIndexPages,
  kFreePages,
  kSweeps,         // complete turns of the sweep
  kStepsUnder1us,  // steps (an op, a pass of upkeep) by the time that their counted work is worth
  kStepsUnder4us,
  kStepsUnder16us,
  kStepsUnder64us,
  kStepsOver64us,
};

enum class StatMerge : uint8_t { kSum, kMax, kMin };

struct StatInfo {
  StatId id;
  std::string_view name;  // as memcached prints it
  StatMerge merge;        // how values of several partitions become one
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
// Whether the row is a level, such as the items held. The others count events since the backend's start or `stats reset`.
bool is_level(StatId id);

}  // namespace egret::op
