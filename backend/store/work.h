// Counts the work of a step (one op, or one pass of upkeep), so that debug builds can assert a bound on it. The unit is
// nanoseconds on a machine of 2020, every access that was not prefetched being a cache miss.
#pragma once

#include <cstdint>

namespace egret::store {

class StepWork {
 public:
  static constexpr uint64_t kLimit = 64'000;  // ns, for a step, and as much for each page that an op's value needs

  static constexpr uint64_t kRecord = 16;       // read or drop a record of a prefetched group
  static constexpr uint64_t kBucket = 4;        // sweep a bucket, in order
  static constexpr uint64_t kExtent = 8;        // free a page or chunk
  static constexpr uint64_t kBytesPerNs = 8;    // copy
  static constexpr uint64_t kReleased = 4'000;  // give a page of 64 KiB back to the system

  void records(uint64_t count) { ns_ += count * kRecord; }
  void buckets(uint64_t count) { ns_ += count * kBucket; }
  void extents(uint64_t count) { ns_ += count * kExtent; }
  void bytes(uint64_t count) { ns_ += count / kBytesPerNs; }
  void released() { ns_ += kReleased; }
  void brings(uint64_t pages) { limit_ += pages * kLimit; }
  uint64_t ns() const { return ns_; }
  bool is_within_limit() const { return ns_ <= limit_; }
  // Whether this step may do optional work, too.
  bool has_time() const { return ns_ < limit_ / 4; }
  bool has_pages() const { return limit_ > kLimit; }
  void reset() {
    ns_ = 0;
    limit_ = kLimit;
  }

 private:
  uint64_t ns_ = 0;
  uint64_t limit_ = kLimit;
};

}  // namespace egret::store
