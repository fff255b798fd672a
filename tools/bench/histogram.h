// A log-linear histogram of durations: every power of two is cut into 128 equal buckets, so a value is known to within
// 1/128 of itself, and a quantile, reported as the middle of its bucket, to within 1/256 (0.4 %). Values below 256 are
// exact. Fixed size (about 37 KiB), no allocation after construction; not thread-safe: one per thread, merged at the
// end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace egret::bench {

class Histogram {
 public:
  static constexpr unsigned kSubBits = 7;   // 128 buckets for each power of two
  static constexpr unsigned kMaxBits = 42;  // larger values (73 minutes in ns) count as the largest
  static constexpr uint64_t kMaxValue = (1ULL << kMaxBits) - 1;
  static constexpr double kRelativeError = 1.0 / 256;

  void record(uint64_t value);
  void merge(const Histogram& other);
  void clear();

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }  // exact
  double mean() const;                   // exact

  // The smallest recorded value v, to within kRelativeError, such that at least `share` (0..1) of all values are <= v.
  // 0 when nothing was recorded.
  uint64_t quantile(double share) const;

  // For tests: which bucket a value falls into, and the first value of a bucket.
  static size_t bucket_of(uint64_t value);
  static uint64_t bucket_begin(size_t bucket);

 private:
  static constexpr size_t kBuckets = (kMaxBits - kSubBits + 1) << kSubBits;

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace egret::bench
