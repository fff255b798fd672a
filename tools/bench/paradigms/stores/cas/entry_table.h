// Which entries of a node's own table are free (paper 003, section 4.3.3). An entry that nothing refers to any more is used
// again only after a delay: a slow reader may still hold a reference. Allocates nothing after it is made.
#pragma once

#include <cstdint>
#include <vector>

namespace egret::bench_paradigms {

class EntryTable {
 public:
  // Entries first … first+count-1 are free; `all`: entries that may ever be given back.
  EntryTable(uint32_t first, uint32_t count, uint32_t all, uint64_t delay_ns);

  // 0: none is free now.
  uint32_t take(uint64_t now);
  // It was never referred to.
  void put_back(uint32_t entry) { never_used_.push_back(entry); }
  // The last reference has gone, by the time `now` at the latest.
  void release(uint32_t entry, uint64_t now);
  bool is_any_waiting() const { return begin_ != end_; }

 private:
  struct Waiting {
    uint32_t entry;
    uint64_t since;
  };
  uint64_t delay_ns_;
  std::vector<uint32_t> never_used_;
  std::vector<Waiting> waiting_;  // a ring, the longest first
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace egret::bench_paradigms
