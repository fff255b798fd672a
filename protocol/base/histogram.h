// A histogram of durations that one thread writes and any thread reads. Fixed memory, no lock, no atomic
// read-modify-write; recording takes a few instructions and does not read the clock.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace egret::base {

// Nanoseconds in four buckets per power of two, from 1 us (the first bucket has all that is shorter) to 69 s (the last
// bucket has all that is longer). A quantile read from it is at most 25 % too large or 20 % too small.
class Histogram {
 public:
  static constexpr uint64_t kFirst = uint64_t{1} << 10;  // ns; less is in the first bucket
  static constexpr uint64_t kLast = uint64_t{1} << 36;   // ns; this and more is in the last bucket
  static constexpr size_t kBuckets = (36 - 10) * 4 + 2;

  // The writing thread only.
  void record(uint64_t ns) {
    add(counts_[bucket_of(ns)], 1);
    add(sum_ns_, ns);
  }

  // Any thread.
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  uint64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }

  static constexpr size_t bucket_of(uint64_t ns) {
    if (ns < kFirst) return 0;
    if (ns >= kLast) return kBuckets - 1;
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
    return 1 + (power - 10) * 4 + (ns >> (power - 2) & 3);
  }
  // The bucket's exclusive upper bound in ns; the last bucket has none.
  static constexpr uint64_t upper_bound(size_t bucket) {
    if (bucket == 0) return kFirst;
    const size_t power = 10 + (bucket - 1) / 4;
    return (uint64_t{1} << power) + ((bucket - 1) % 4 + 1) * (uint64_t{1} << (power - 2));
  }

 private:
  using Cell = std::atomic<uint64_t>;
  static void add(Cell& cell, uint64_t n) {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::array<Cell, kBuckets> counts_{};
  Cell sum_ns_{0};
};
static_assert(Histogram::upper_bound(Histogram::kBuckets - 2) == Histogram::kLast);

}  // namespace egret::base
