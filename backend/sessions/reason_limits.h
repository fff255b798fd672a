// How often a log line may be written, for each reason that it gives. A proxy that is turned away tries again and again: its
// reason must not fill the log, nor hide why another one is turned away. A peer can make reasons up, since some hold what it
// has sent; so the number of reasons with a limit of their own is bounded.
// Thread: its owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/log/log.h"

namespace egret::backend {

class ReasonLimits {
 public:
  static constexpr size_t kMaxReasons = 32;  // with a limit of their own; all others share one

  // `burst`: lines of a reason in ten seconds.
  explicit ReasonLimits(uint32_t burst) : burst_(burst), others_(burst) {}

  // The reference is valid as long as this object.
  base::LogLimit& of(const std::string& reason) {
    if (const auto known = limits_.find(reason); known != limits_.end()) return known->second;
    if (limits_.size() >= kMaxReasons) return others_;
    return limits_.try_emplace(reason, burst_).first->second;
  }

 private:
  const uint32_t burst_;
  std::map<std::string, base::LogLimit> limits_;
  base::LogLimit others_;
};

}  // namespace egret::backend
