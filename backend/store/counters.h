// The store's counters: those of op/stats.h by their ids, and those of every size class.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "op/stats.h"

namespace egret::store {

struct Counters {
  struct Class {
    uint64_t number = 0;
    uint64_t bytes = 0;
    uint64_t evicted = 0;
    uint64_t evicted_nonzero = 0;
    uint64_t evicted_time = 0;
    uint64_t evicted_unfetched = 0;
    uint64_t evicted_active = 0;
    uint64_t expired_unfetched = 0;
    uint64_t reclaimed = 0;
    uint64_t out_of_memory = 0;
  };

  uint64_t& operator[](op::StatId id) { return values[static_cast<size_t>(id)]; }
  uint64_t operator[](op::StatId id) const { return values[static_cast<size_t>(id)]; }

  // The count since the store was created; a reset does not change it.
  uint64_t lifetime(op::StatId id) const { return (*this)[id] + before_reset[static_cast<size_t>(id)]; }

  // `stats reset`: gauges stay, event counters restart at 0.
  void reset() {
    const uint64_t bytes = std::exchange((*this)[op::StatId::kBytes], 0);
    const uint64_t items = std::exchange((*this)[op::StatId::kCurrItems], 0);
    for (size_t i = 0; i < values.size(); ++i) before_reset[i] += values[i];
    values = {};
    (*this)[op::StatId::kBytes] = bytes;
    (*this)[op::StatId::kCurrItems] = items;
    for (Class& each : classes) each = {.number = each.number, .bytes = each.bytes};
  }

  std::array<uint64_t, static_cast<size_t>(op::StatId::kStepsOver64us) + 1> values{};
  std::array<uint64_t, static_cast<size_t>(op::StatId::kStepsOver64us) + 1> before_reset{};
  std::array<Class, op::kSizeClasses> classes{};
};

}  // namespace egret::store
