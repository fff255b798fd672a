// Records: what is said of an item without its value, for those who walk over all of them (`lru_crawler metadump`) or
// want to see who goes (`watch evictions`). The value of an Iterate's result is a sequence of records, each a head and
// a key, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "op/op.h"

namespace egret::op {

// What an Iterate walks over. Wire format.
enum class RecordSource : uint8_t {
  // All items, those of Op::size_class only if it names one. `version`: 0, or the cursor that the page before has
  // given.
  // Who stays during the whole walk is told of once; nothing that is expired or flushed is.
  kItems = 0,
  // The evicted, in order. `version`: 0, from now on; or the cursor of the page before. They are noted down for
  // kWatchSeconds after each such question; `number` says how many are lost to somebody who came too late.
  kEvicted = 1,
};
inline constexpr uint8_t kAnySizeClass = 255;
inline constexpr uint32_t kWatchSeconds = 10;
inline constexpr uint64_t kWalkOver = UINT64_MAX;  // the cursor of a walk over items when there is nothing more

struct RecordHead {
  uint64_t cursor;  // where the walk goes on behind this one
  uint64_t cas;
  uint32_t exptime;       // Unix second; 0: never
  uint32_t last_access;   // Unix second
  uint32_t seen;          // Unix second: of this record, or of the eviction
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

// `head.key_length` is set here.
void append_record(std::string& to, RecordHead head, std::string_view key);
// Takes the first record away. False: there is none, or the bytes are no record.
bool take_record(std::string_view& records, Record& record);

// The whole records that fit in `room` bytes, and where to go on behind them.
struct RecordPage {
  std::string_view records;
  uint64_t cursor;
};
// `cursor`: where to go on behind them all.
RecordPage cut_records(std::string_view records, uint64_t cursor, size_t room);

}  // namespace egret::op
