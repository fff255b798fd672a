// What the tests of nessie have in common: a clock that goes on by a step each time somebody looks at it.
#pragma once

#include "base/clock.h"
#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

inline constexpr uint32_t kNessieKeys = 3000;
inline constexpr uint64_t kTickNs = 10'000;

class TickingClock final : public base::Clock {
 public:
  uint64_t now_ns() const override { return now_ns_ += kTickNs; }
  int64_t unix_seconds() const override { return 0; }

 private:
  mutable uint64_t now_ns_ = 0;
};
inline const TickingClock kTickingClock;

inline Plan nessie_plan() {
  Plan plan;
  plan.servers = 2;
  plan.clients = 3;
  plan.window = 4;
  plan.clock = &kTickingClock;
  plan.tuning.reuse_delay_ns = 100'000'000;
  return plan;
}

}  // namespace egret::bench_paradigms
