// The clock that production code is given in a simulation. Reading it may let others in.
#pragma once

#include <functional>

#include "base/clock.h"

namespace egret::sim {

class SimClock final : public base::Clock {
 public:
  uint64_t now_ns() const override {
    if (on_read) on_read();
    return manual.now_ns();
  }
  int64_t unix_seconds() const override { return manual.unix_seconds(); }
  base::ManualClock manual;
  std::function<void()> on_read;
};

}  // namespace egret::sim
