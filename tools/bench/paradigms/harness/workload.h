// Which op a client does next. One object a client; the seed replays it. What is drawn depends on nothing that happens
// in the run: so the keys of a run can be drawn again, to count what their gets should have cost.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/sampler.h"
#include "bench_paradigms/harness/setting.h"

namespace egret::bench_paradigms {

struct WorkloadSpec {
  uint32_t keys = 1;
  uint32_t clients = 1;
  double gets = 1;
  double erases = 0;    // of what are no gets
  double zipf = 0;      // exponent; 0: uniform
  double locality = 0;  // share of the gets whose key is one that this client puts
  Writers writers = Writers::kOne;
  bool next_only = false;   // a sequencer: every op is kNext
  bool stores_puts = true;  // false: no get is expected to show what was put
  uint64_t seed = 1;
};

struct Draw {
  OpKind kind = OpKind::kGet;
  uint32_t key = 0;
};

class Workload {
 public:
  // keys >= clients.
  Workload(const WorkloadSpec& spec, uint32_t client)
      : spec_(spec), client_(client), rng_(spec.seed * 1'000'003 + client) {
    if (spec.zipf > 0) zipf_.emplace(spec.keys, spec.zipf);
  }

  Draw draw() {
    if (spec_.next_only) return {OpKind::kNext, 0};
    const uint32_t key = draw_key();
    if (spec_.gets >= 1 || rng_.unit() < spec_.gets) {
      const bool is_own = spec_.locality > 0 && rng_.unit() < spec_.locality;
      return {OpKind::kGet, is_own ? own(key) : key};
    }
    const bool is_erase = spec_.erases > 0 && rng_.unit() < spec_.erases;
    return {is_erase ? OpKind::kErase : OpKind::kPut, spec_.writers == Writers::kOne ? own(key) : key};
  }

 private:
  // Ranks are scattered over the numbers: keys that were loaded one after the other must not all be popular.
  uint32_t draw_key() {
    if (!zipf_) return rng_.below(spec_.keys);
    return static_cast<uint32_t>((zipf_->sample(rng_) * kScatter) % spec_.keys);
  }
  // The key near `key` that this client alone puts.
  uint32_t own(uint32_t key) const {
    const uint32_t mine = key - key % spec_.clients + client_;
    return mine < spec_.keys ? mine : mine - spec_.clients;
  }

  static constexpr uint64_t kScatter = 4'294'967'291;  // a prime above any number of keys: a bijection modulo it

  WorkloadSpec spec_;
  uint32_t client_;
  bench::Rng rng_;
  std::optional<bench::ZipfSampler> zipf_;
};

// Of `ops` in all, those of one client.
uint64_t share_of(uint64_t ops, uint32_t clients, uint32_t client);

WorkloadSpec workload_of(const Setting& setting, const Case& one, bool next_only);

}  // namespace egret::bench_paradigms
