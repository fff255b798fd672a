// How long things took: counts by size, for one thread that writes and any that read. Fixed memory, no lock, no locked
// instruction; recording is a handful of instructions and takes no clock reading of its own.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace egret::base {

// Nanoseconds in buckets of four to each power of two, from 1 us (what is shorter is in the first) to 69 s (what is
// longer is in the last, with the rest): a quantile read off it is at most a quarter too large or a fifth too small.
class Histogram {
 public:
  static constexpr uint64_t kFirst = uint64_t{1} << 10;  // below it: bucket 0
  static constexpr uint64_t kLast = uint64_t{1} << 36;   // from it on: the last one
  static constexpr size_t kBuckets = (36 - 10) * 4 + 2;

  // The writer.
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
  // What its durations are below; the last has no such bound.
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
