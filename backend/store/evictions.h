// Who was evicted of late, for those who watch: a ring of records, there only while somebody asks for them.
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
  // Takes its memory at the first call; the watch lasts until that second.
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
    uint64_t cursor;  // of the next
    uint64_t lost;    // between `cursor` and the first of these
  };
  // Appends what is there from `cursor` on (0, or one of another life of this store: nothing), up to about so many
  // bytes.
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
  std::vector<Entry> entries_;  // none: nobody watches
  uint64_t next_ = 1;           // the number of the next one; a record's cursor is that of the one behind it
  uint64_t kept_from_ = 1;
  uint32_t until_ = 0;
};

}  // namespace egret::store
