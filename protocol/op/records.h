// Records: an item's metadata without its value, for listing all items (`lru_crawler metadump`) and for watching
// evictions (`watch evictions`). The value of an Iterate's result is a sequence of records, each a head and a key,
// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "op/op.h"

namespace egret::op {

// What an Iterate lists. Wire format.
enum class RecordSource : uint8_t {
  // All items; if Op::size_class names one class, only that class. `version`: 0, or the cursor of the page before. An
  // item that exists during the whole walk is listed once; expired and flushed items are not listed.
  kItems = 0,
  // Evicted items, in order. `version`: 0: from now on; else the cursor of the page before. Evictions are recorded for
  // kWatchSeconds after each such op; `number` says how many records were overwritten before they were read.
  kEvicted = 1,
  // Keys that ops with this op's `owner` have changed, in order; of each record only cursor and key have a meaning.
  // `version`: kEnterFailover, kOldestChange, kChangesFromNow, or the cursor of the page before. `number` is not 0 if
  // not all are known that were changed since then: any key may be one.
  kChanged = 2,
};
// Somebody begins to use this backend in the place of `owner`: what is stored for that owner by now is seen no more.
// The changes from now on.
inline constexpr uint64_t kEnterFailover = 0;
inline constexpr uint64_t kOldestChange = 1;
inline constexpr uint64_t kChangesFromNow = UINT64_MAX;
// With this size class, kChanged also says that all changes before its cursor have been purged on the owner.
inline constexpr uint8_t kPurgedBefore = 0;

// Without an owner, kChanged lists all owners for which something was changed: the key of each record is one of these,
// little-endian, and `version` is 0 or the cursor of the record before.
struct ChangedOwner {
  uint64_t tag;
  uint64_t end;     // the cursor behind the changes that are to be purged by now
  uint64_t purged;  // up to this cursor somebody has said kPurgedBefore
};
static_assert(sizeof(ChangedOwner) == 24);
inline constexpr uint8_t kAnySizeClass = 255;
inline constexpr uint32_t kWatchSeconds = 10;
inline constexpr uint64_t kWalkOver = UINT64_MAX;  // the cursor behind the last item

struct RecordHead {
  uint64_t cursor;  // where the walk continues after this record
  uint64_t cas;
  uint32_t exptime;       // Unix second; 0: never
  uint32_t last_access;   // Unix second
  uint32_t seen;          // Unix second when this record was made, or of the eviction
  uint32_t client_flags;  // the item's
  uint32_t value_length;
  uint8_t size_class;  // op/stats.h
  uint8_t marks;       // ResultMarks: kFetched, kStale, kTokenSent
  uint8_t key_length;
  uint8_t reserved;  // 0
};
static_assert(sizeof(RecordHead) == 40 && offsetof(RecordHead, exptime) == 16 &&
              offsetof(RecordHead, size_class) == 36);

struct Record {
  RecordHead head;
  std::string_view key;
};

inline constexpr size_t kMaxRecord = sizeof(RecordHead) + kMaxKeyLength;

// Sets `head.key_length` itself.
void append_record(std::string& to, RecordHead head, std::string_view key);
// Removes the first record from `records`. False: there is none, or the bytes are not a record.
bool take_record(std::string_view& records, Record& record);

// The whole records that fit into `room` bytes, and where the walk continues after them.
struct RecordPage {
  std::string_view records;
  uint64_t cursor;
};
// `cursor`: where the walk continues after all of `records`.
RecordPage cut_records(std::string_view records, uint64_t cursor, size_t room);

}  // namespace egret::op
