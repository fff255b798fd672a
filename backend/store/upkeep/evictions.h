// The latest evictions, for `watch evictions`: a ring of records, filled only while somebody watches.
// Thread: the store's owner's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "op/records.h"

namespace egret::store {

class Evictions {
 public:
  static constexpr size_t kEntries = 4096;  // about 1.2 MiB, outside the store's arena

  bool is_watched() const { return !entries_.empty(); }
  // Records evictions until that second. The first call allocates the ring.
  void watch(uint32_t until) {
    until_ = until;
    entries_.resize(kEntries);
  }
  void forget_if_over(uint32_t now) {
    if (now < until_) return;
    entries_ = {};
    kept_from_ = next_;
  }

  void add(op::RecordHead head, std::string_view key) {
    Entry& entry = entries_[next_ % kEntries];
    head.cursor = ++next_;
    head.key_length = static_cast<uint8_t>(key.size());
    entry.head = head;
    std::memcpy(entry.key.data(), key.data(), key.size());
  }

  struct Page {
    uint64_t cursor;  // where to read on
    uint64_t lost;    // records overwritten before they were read
  };
  // Appends the records from `cursor` on to `to`, until they exceed `bytes`. Cursor 0, or one from before a restart:
  // none.
  Page read(uint64_t cursor, size_t bytes, std::string& to) const {
    if (cursor == 0 || cursor > next_) return {next_, 0};
    const uint64_t oldest = std::max(kept_from_, next_ > kEntries ? next_ - kEntries : 0);
    const uint64_t lost = cursor < oldest ? oldest - cursor : 0;
    for (cursor += lost; cursor < next_ && to.size() < bytes; ++cursor) {
      const Entry& entry = entries_[cursor % kEntries];
      op::append_record(to, entry.head, {entry.key.data(), entry.head.key_length});
    }
    return {cursor, lost};
  }

 private:
  struct Entry {
    op::RecordHead head;
    std::array<char, op::kMaxKeyLength> key;
  };
  std::vector<Entry> entries_;  // empty: nobody has watched yet
  uint64_t next_ = 1;           // number of the next record; a record's cursor is its number + 1
  uint64_t kept_from_ = 1;
  uint32_t until_ = 0;
};

}  // namespace egret::store
