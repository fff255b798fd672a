#include "access/admission.h"

#include <algorithm>

namespace egret::access {

namespace {
constexpr uint64_t kUnknownCostNs = 200'000;
constexpr uint64_t kLeastCostNs = 20'000;
constexpr uint64_t kMostCostNs = 20'000'000;
constexpr uint64_t kNsPerMs = 1'000'000;
}  // namespace

void Admission::learn(uint64_t& mean_ns, uint64_t ns) {
  if (mean_ns == 0) {
    mean_ns = std::max<uint64_t>(ns, 1);
  } else {
    mean_ns = mean_ns - mean_ns / 8 + std::min(ns, kMostCostNs) / 8;
  }
}

// Until a session has been granted, granting is taken to cost as much as accepting.
uint64_t Admission::cost_ns() const {
  if (accept_ns_ == 0) return kUnknownCostNs;
  return std::clamp(accept_ns_ + (grant_ns_ == 0 ? accept_ns_ : grant_ns_), kLeastCostNs, kMostCostNs);
}

uint32_t Admission::come_back_ms(uint64_t now_ns, size_t under_way, bool came_back, size_t most) {
  const uint64_t cost = cost_ns();
  // While others have moments there is room for them.
  const size_t at_once = next_ns_ > now_ns ? kLeastUnderWay : std::clamp<size_t>(kSoonNs / cost, kLeastUnderWay, most);
  if (under_way < (came_back ? kMostWithReturners : at_once)) return 0;
  const uint64_t pace = std::max(cost + cost / 8, kQuickestPaceNs);
  constexpr uint64_t kLongestNs = kLongestPauseMs * kNsPerMs;
  const uint64_t next_ns = std::max(next_ns_, now_ns + kFirstMomentNs + under_way * pace) + pace;
  if (next_ns - now_ns > kLongestNs) {  // so many that even their moments are shared
    return static_cast<uint32_t>((kLongestNs / 2 + late_++ * pace % (kLongestNs / 2)) / kNsPerMs);
  }
  next_ns_ = next_ns;
  return static_cast<uint32_t>((next_ns - now_ns + kNsPerMs - 1) / kNsPerMs);
}

}  // namespace egret::access
