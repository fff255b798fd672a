// The store's counters, by the ids of op/stats.h.
#pragma once

#include <array>
#include <cstdint>

#include "op/stats.h"

namespace egret::store {

class Counters {
 public:
  uint64_t& operator[](op::StatId id) { return values_[static_cast<size_t>(id)]; }
  uint64_t operator[](op::StatId id) const { return values_[static_cast<size_t>(id)]; }

  // `stats reset`: what says how things are stays, what counts events starts again.
  void reset() {
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto id = static_cast<op::StatId>(i);
      if (id != op::StatId::kBytes && id != op::StatId::kCurrItems) values_[i] = 0;
    }
  }

 private:
  std::array<uint64_t, static_cast<size_t>(op::StatId::kStepsOver64us) + 1> values_{};
};

}  // namespace egret::store
