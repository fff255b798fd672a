#include "bench_cache/trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "bench_cache/item_client.h"

namespace egret::bench_cache {
namespace {

using bench::mix64;
using bench::Rng;

// Sizes and lifetimes of a key do not depend on the order of requests: each has its own generator.
constexpr uint64_t kSizeStream = 0x517e;
constexpr uint64_t kTtlStream = 0x771;

Rng rng_of(uint64_t seed, uint64_t stream, uint32_t key) {
  return Rng(mix64(mix64(seed) + stream) + key);
}

// Drawn again while outside the bounds, not moved to them: no size is more frequent than its neighbours.
uint16_t draw_size(Rng rng) {
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.unit()));
    const double normal = radius * std::cos(2 * std::numbers::pi * rng.unit());
    const double size = kMedianSize * std::exp(kSizeSigma * normal);
    if (size >= kMinSize && size <= kMaxSize) return static_cast<uint16_t>(size);
  }
}

uint16_t draw_ttl(Rng rng, double scale) {
  const double ttl = kTtlMinS * scale * std::exp(rng.unit() * std::log(kTtlMaxS / kTtlMinS));
  return static_cast<uint16_t>(std::clamp(std::round(ttl), 1.0, double{std::numeric_limits<uint16_t>::max()}));
}

}  // namespace

std::vector<Mix> all_mixes() {
  std::vector<Mix> mixes;
  for (const double zipf : {0.99, 0.7}) {
    const std::string prefix = zipf == 0.99 ? "zipf 0.99, " : "zipf 0.7, ";
    for (const bool lognormal : {false, true}) {
      const std::string sizes = prefix + (lognormal ? "lognormal" : "32 B");
      mixes.push_back({.name = sizes, .zipf = zipf, .lognormal = lognormal});
      mixes.push_back({.name = sizes + ", TTL", .zipf = zipf, .lognormal = lognormal, .expires = true});
      mixes.push_back({.name = sizes + ", scan", .zipf = zipf, .lognormal = lognormal, .scan_share = 0.2});
    }
  }
  return mixes;
}

uint32_t memcached_chunk(uint32_t key_size, uint32_t value_size) {
  constexpr uint32_t kHeader = 48 + 8;      // item and CAS
  constexpr uint32_t kTerminators = 1 + 2;  // NUL of the key, CRLF of the value
  const uint32_t needed = kHeader + key_size + value_size + kTerminators;
  uint32_t chunk = 96;
  while (chunk < needed) chunk = (chunk * 5 / 4 + 7) / 8 * 8;
  return chunk;
}

Trace::Trace(const Mix& mix, uint32_t keys, uint64_t seed, double ttl_scale)
    : mix_(mix), keys_(keys), rng_(seed), sampler_(keys, mix.zipf), scan_begin_(keys / 10), scan_at_(scan_begin_) {
  if (mix.lognormal) {
    sizes_.resize(keys);
    for (uint32_t key = 0; key < keys; ++key) sizes_[key] = draw_size(rng_of(seed, kSizeStream, key));
  }
  if (mix.expires) {
    ttls_.resize(keys);
    for (uint32_t key = 0; key < keys; ++key) ttls_[key] = draw_ttl(rng_of(seed, kTtlStream, key), ttl_scale);
  }
}

Request Trace::next() {
  if (mix_.scan_share > 0 && rng_.unit() < mix_.scan_share) {
    const uint32_t key = scan_at_;
    if (++scan_at_ == keys_) scan_at_ = scan_begin_;
    return {.key = key, .is_scan = true};
  }
  Request request;
  request.key = sampler_.sample(rng_);
  request.is_overwrite = rng_.unit() < mix_.overwrite_share;
  return request;
}

uint64_t Trace::footprint_bytes(Footprint footprint) const {
  const auto of_size = [footprint](uint32_t size) {
    return footprint == Footprint::kChunks ? memcached_chunk(kKeySize, size) : kKeySize + size;
  };
  if (sizes_.empty()) return uint64_t{keys_} * of_size(kSmallSize);
  uint64_t bytes = 0;
  for (const uint16_t size : sizes_) bytes += of_size(size);
  return bytes;
}

uint32_t keys_for_footprint(const Mix& mix, Footprint footprint, uint64_t bytes, uint64_t seed) {
  constexpr uint32_t kSample = 100'000;
  const Trace sample({.name = "", .zipf = 1, .lognormal = mix.lognormal}, kSample, seed, 1);
  const double keys = static_cast<double>(bytes) * kSample / static_cast<double>(sample.footprint_bytes(footprint));
  return static_cast<uint32_t>(std::clamp(keys, 1.0, 4e9));
}

}  // namespace egret::bench_cache
