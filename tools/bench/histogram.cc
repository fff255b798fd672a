#include "bench/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace egret::bench {

// Values below 2^(kSubBits+1) index directly. A larger one is shifted right until kSubBits+1 bits are left; the shift
// chooses the group, the bits below the leading one the bucket in it.
size_t Histogram::bucket_of(uint64_t value) {
  value = std::min(value, kMaxValue);
  const unsigned width = static_cast<unsigned>(std::bit_width(value));
  if (width <= kSubBits + 1) return value;
  const unsigned shift = width - (kSubBits + 1);
  return (static_cast<size_t>(shift) << kSubBits) + (value >> shift);
}

uint64_t Histogram::bucket_begin(size_t bucket) {
  if (bucket < (2ULL << kSubBits)) return bucket;
  const size_t shift = (bucket >> kSubBits) - 1;
  const uint64_t top = bucket - (shift << kSubBits);
  return top << shift;
}

void Histogram::record(uint64_t value) {
  ++buckets_[bucket_of(value)];
  ++count_;
  sum_ += value;
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
  *this = Histogram();
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

uint64_t Histogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen < rank) continue;
    const uint64_t begin = bucket_begin(i);
    const uint64_t end = bucket_begin(i + 1);
    return std::min(begin + (end - begin - 1) / 2, max_);
  }
  return max_;
}

}  // namespace egret::bench
