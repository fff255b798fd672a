// Chooses the next request: get or set, and its keys. One object per thread; the seed replays it.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/load_spec.h"
#include "bench/sampler.h"

namespace egret::bench {

class RequestMix {
 public:
  RequestMix(const LoadSpec& spec, uint32_t thread)
      : rng_(spec.seed * 1'000'003 + thread), keys_(spec.keys), read_share_(spec.read_share) {
    if (spec.zipf > 0) zipf_.emplace(spec.keys, spec.zipf);
    next_version_ = (static_cast<uint64_t>(thread) + 1) << 48;  // no two sets of a run write the same version
  }

  bool next_is_get() { return read_share_ >= 1 || rng_.unit() < read_share_; }
  uint64_t next_version() { return ++next_version_; }

  // Scatters Zipf ranks over the key numbers: keys that were loaded one after the other, and so lie next to each other
  // in the server's memory, must not all be popular.
  uint32_t next_key() {
    if (!zipf_) return rng_.below(keys_);
    return static_cast<uint32_t>((zipf_->sample(rng_) * kScatter) % keys_);
  }

 private:
  static constexpr uint64_t kScatter = 4'294'967'291;  // a prime above any key count: a bijection modulo the key count

  Rng rng_;
  uint32_t keys_;
  double read_share_;
  std::optional<ZipfSampler> zipf_;
  uint64_t next_version_;
};

}  // namespace egret::bench
