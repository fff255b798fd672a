// The requests that `egret-bench hits` replays: which key, in which order, and each key's size and lifetime. All of it
// follows from the mix, the number of keys and a seed, so two servers see the same. Keys are their ranks: 0 is the most
// popular. Read-only after construction but for next(); one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/sampler.h"

namespace egret::bench_cache {

struct Mix {
  std::string name;
  double zipf = 0.99;
  bool lognormal = false;        // value sizes: lognormal around kMedianSize; else kSmallSize, all
  bool expires = false;          // keys have lifetimes, log-uniform in [kTtlMin, kTtlMax] × the scale
  double scan_share = 0;         // of the requests: gets of keys one after another, round and round, of the cold 90 %
  double overwrite_share = 0.1;  // of the other requests: sets without a get before
};

inline constexpr uint32_t kSmallSize = 32;
inline constexpr double kMedianSize = 200;
inline constexpr double kSizeSigma = 1;   // of the logarithm: the mean is about 1.6 medians
inline constexpr uint32_t kMinSize = 16;  // room for key number and version, which are checked
inline constexpr uint32_t kMaxSize = 4096;
inline constexpr double kTtlMinS = 20;
inline constexpr double kTtlMaxS = 3600;

// Every mix that is replayed, in the order of the report.
std::vector<Mix> all_mixes();

// What a footprint is the sum of, over all keys.
enum class Footprint : uint8_t {
  kChunks,  // memcached_chunk(): a server with as much memory holds all keys if it is memcached or leaner
  kData,    // key and value alone, as papers count: nobody holds all keys in so much
};

// Bytes of a memcached slab chunk (default factor and page) for an item with a CAS, no flags and a value of this size.
uint32_t memcached_chunk(uint32_t key_size, uint32_t value_size);

struct Request {
  uint32_t key = 0;
  bool is_overwrite = false;
  bool is_scan = false;
};

class Trace {
 public:
  // `ttl_scale`: wall time is real, so lifetimes are shortened by this to matter within a run.
  Trace(const Mix& mix, uint32_t keys, uint64_t seed, double ttl_scale);

  Request next();

  uint32_t keys() const { return keys_; }
  uint32_t value_size(uint32_t key) const { return sizes_.empty() ? kSmallSize : sizes_[key]; }
  uint32_t ttl_s(uint32_t key) const { return ttls_.empty() ? 0 : ttls_[key]; }  // at least 1; 0: never expires
  uint64_t footprint_bytes(Footprint footprint) const;

 private:
  Mix mix_;
  uint32_t keys_;
  bench::Rng rng_;
  bench::ZipfSampler sampler_;
  uint32_t scan_begin_;
  uint32_t scan_at_;
  std::vector<uint16_t> sizes_;
  std::vector<uint16_t> ttls_;
};

// So many keys that the footprint is `bytes`, to within a key or, with sizes that are drawn, about 1 %. At least 1.
uint32_t keys_for_footprint(const Mix& mix, Footprint footprint, uint64_t bytes, uint64_t seed);

}  // namespace egret::bench_cache
