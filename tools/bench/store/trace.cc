#include "bench_store/trace.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace egret::bench_store {
namespace {

constexpr double kLognormalMedian = 200;
constexpr double kLognormalSigma = 1;

// A number in (0, 1] that belongs to the key, and a different one for every purpose.
double share_of(uint32_t key, uint64_t purpose) {
  return static_cast<double>((bench::mix64(key + (purpose << 40)) >> 11) + 1) * 0x1.0p-53;
}

// Box and Muller's, from two numbers of the key.
double normal_of(uint32_t key) {
  return std::sqrt(-2 * std::log(share_of(key, 1))) * std::cos(2 * std::numbers::pi * share_of(key, 2));
}

}  // namespace

Trace::Trace(const TraceSpec& spec) : spec_(spec), rng_(spec.seed), sampler_(spec.keys, spec.zipf) {}

Request Trace::next() {
  const bool overwrites = rng_.unit() < spec_.overwrites;
  return {sampler_.sample(rng_), overwrites};
}

uint32_t Trace::value_size(uint32_t key) const {
  if (spec_.sizes == ValueSizes::kFixed32) return 32;
  const double size = kLognormalMedian * std::exp(kLognormalSigma * normal_of(key));
  return static_cast<uint32_t>(std::clamp(size, 1.0, double{kMaxValue}));
}

uint32_t Trace::ttl(uint32_t key) const {
  if (spec_.ttl_max == 0) return 0;
  const double ratio = static_cast<double>(spec_.ttl_max) / spec_.ttl_min;
  return static_cast<uint32_t>(spec_.ttl_min * std::pow(ratio, share_of(key, 3)));
}

uint64_t Trace::footprint() const {
  uint64_t bytes = uint64_t{spec_.keys} * kKeyLength;
  for (uint32_t key = 0; key < spec_.keys; ++key) bytes += value_size(key);
  return bytes;
}

}  // namespace egret::bench_store
