#include "bench_store/peer/raw_lines.h"

#include <algorithm>

#include "bench/sampler.h"

namespace egret::bench_store {
namespace {

constexpr uint64_t kPairs = 1u << 18;  // between two looks at the clock
constexpr uint64_t kDrawn = kPairs * 16;
constexpr uint64_t kBatch = 32;

uint64_t below(bench::Rng& rng, uint64_t bound) {
  return rng.next() % bound;
}

}  // namespace

RawLines::RawLines(uint64_t index_bytes, uint64_t item_bytes)
    : index_lines_(std::max<uint64_t>(index_bytes / kLine, 1)),
      item_lines_(std::max<uint64_t>(item_bytes / kLine, 1)),
      index_(index_lines_ * kLine),
      items_(item_lines_ * kLine),
      first_(kDrawn) {
  bench::Rng rng(17);
  for (uint64_t i = 0; i < index_lines_; ++i) index_.words()[i * kWords] = below(rng, item_lines_) * kWords;
  for (uint64_t i = 0; i < item_lines_; ++i) items_.words()[i * kWords] = i;
  for (uint64_t& word : first_) word = below(rng, index_lines_) * kWords;
}

uint64_t RawLines::read_pairs(const uint64_t* first) const {
  const uint64_t* index = index_.words();
  const uint64_t* items = items_.words();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < kPairs; i += kBatch) {
    for (uint64_t j = i; j < i + kBatch; ++j) __builtin_prefetch(index + first[j]);
    for (uint64_t j = i; j < i + kBatch; ++j) __builtin_prefetch(items + index[first[j]]);
    for (uint64_t j = i; j < i + kBatch; ++j) sum += items[index[first[j]]];
  }
  return sum;
}

double RawLines::measure(double seconds) {
  const auto draw = [this] {
    at_ = (at_ + kPairs) % kDrawn;
    return kPairs;
  };
  const double ns = ns_per_op(seconds, draw, [this] { sum_ += read_pairs(first_.data() + at_); });
  asm volatile("" : : "r"(sum_));
  return ns;
}

}  // namespace egret::bench_store
