// How much a step (one op, one pass of upkeep) has done, counted, so that a bound on it can be asserted: in nanoseconds
// that such work is worth on a machine of 2020, all caches missed but for what is prefetched.
#pragma once

#include <cstdint>

namespace egret::store {

class StepWork {
 public:
  static constexpr uint64_t kLimit = 64'000;  // ns, for a step and for each page of its own that an op brings

  static constexpr uint64_t kRecord = 16;       // a record looked at or dropped, in a prefetched group
  static constexpr uint64_t kBucket = 4;        // a bucket swept, in order
  static constexpr uint64_t kExtent = 8;        // a page or chunk given back
  static constexpr uint64_t kBytesPerNs = 8;    // copied
  static constexpr uint64_t kReleased = 4'000;  // a page of 64 KiB given back to the system

  void records(uint64_t count) { ns_ += count * kRecord; }
  void buckets(uint64_t count) { ns_ += count * kBucket; }
  void extents(uint64_t count) { ns_ += count * kExtent; }
  void bytes(uint64_t count) { ns_ += count / kBytesPerNs; }
  void released() { ns_ += kReleased; }
  void brings(uint64_t pages) { limit_ += pages * kLimit; }
  uint64_t ns() const { return ns_; }
  bool is_within_limit() const { return ns_ <= limit_; }
  // Whether there is time for what could also wait.
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
