#include "bench_paradigms/stores/cas/entry_table.h"

namespace egret::bench_paradigms {

EntryTable::EntryTable(uint32_t first, uint32_t count, uint32_t all, uint64_t delay_ns)
    : delay_ns_(delay_ns), waiting_(all + 1) {
  never_used_.reserve(all + 1);
  for (uint32_t i = 0; i < count; ++i) never_used_.push_back(first + count - 1 - i);
}

uint32_t EntryTable::take(uint64_t now) {
  if (begin_ != end_ && now - waiting_[begin_ % waiting_.size()].since >= delay_ns_) {
    return waiting_[begin_++ % waiting_.size()].entry;
  }
  if (never_used_.empty()) return 0;
  const uint32_t entry = never_used_.back();
  never_used_.pop_back();
  return entry;
}

void EntryTable::release(uint32_t entry, uint64_t now) {
  waiting_[end_++ % waiting_.size()] = {entry, now};
}

}  // namespace egret::bench_paradigms
