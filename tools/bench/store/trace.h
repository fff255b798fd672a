// The requests of a replay: keys by Zipf's law, some of them overwrites; every key has a fixed value size and time to
// live. All of it follows from the seed, so that two caches get the same requests.
#pragma once

#include <cstdint>

#include "bench/sampler.h"
#include "bench_store/keys.h"

namespace egret::bench_store {

enum class ValueSizes : uint8_t {
  kFixed32,    // 32 bytes
  kLognormal,  // median 200 bytes, sigma 1, at most kMaxValue
};

struct TraceSpec {
  uint32_t keys = 1;
  double zipf = 0.99;
  double overwrites = 0.1;  // share of the requests; the others are gets
  ValueSizes sizes = ValueSizes::kFixed32;
  uint32_t ttl_min = 0;  // seconds, log-uniform over the keys; 0: items do not expire
  uint32_t ttl_max = 0;
  uint64_t seed = 1;
};

struct Request {
  uint32_t key = 0;
  bool overwrites = false;
};

class Trace {
 public:
  static constexpr uint32_t kMaxValue = 16384;

  explicit Trace(const TraceSpec& spec);

  Request next();
  uint32_t value_size(uint32_t key) const;
  uint32_t ttl(uint32_t key) const;  // 0: for ever
  // Bytes of all keys and values: what a cache without overhead would need to hold everything.
  uint64_t footprint() const;

 private:
  const TraceSpec spec_;
  bench::Rng rng_;
  const bench::ZipfSampler sampler_;
};

}  // namespace egret::bench_store
