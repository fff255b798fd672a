// Limits of log lines, one for each reason that a line gives: a proxy tries again and again, and each reason is logged only so
// often; but no reason hides another. A reason may hold what a peer has sent, so only so many are told apart.
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
  static constexpr size_t kMaxReasons = 32;  // further ones share a limit

  // `burst`: lines of a reason in ten seconds.
  explicit ReasonLimits(uint32_t burst) : burst_(burst), others_(burst) {}

  // Stays where it is.
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
