// The control "raw2": reads two dependent random cache lines and nothing else. The first line is in a range as large as
// an index; it says which line is read in a second range, as large as the items.
#pragma once

#include <cstdint>
#include <vector>

#include "bench_store/machine.h"

namespace egret::bench_store {

class RawLines {
 public:
  RawLines(uint64_t index_bytes, uint64_t item_bytes);

  // ns for each pair of lines, with 32 pairs in flight.
  double measure(double seconds);

  // For callers that have hashes: the line of the index for a hash, and the line of the items that it refers to.
  const uint64_t* index_line(uint64_t hash) const {
    return index_.words() + (hash >> 32) * index_lines_ / kSpan * kWords;
  }
  const char* item_line(const uint64_t* index_line) const {
    return reinterpret_cast<const char*>(items_.words() + *index_line);
  }

 private:
  static constexpr uint64_t kLine = 64;
  static constexpr uint64_t kWords = kLine / sizeof(uint64_t);  // of a line
  static constexpr uint64_t kSpan = uint64_t{1} << 32;
  uint64_t read_pairs(const uint64_t* first) const;

  const uint64_t index_lines_;
  const uint64_t item_lines_;
  Region index_;
  Region items_;
  std::vector<uint64_t> first_;  // lines of the index, in random order
  uint64_t at_ = 0;              // the next of `first_`
  uint64_t sum_ = 0;             // keeps the reads from being optimised away
};

}  // namespace egret::bench_store
