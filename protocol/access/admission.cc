#include "access/admission.h"

#include <algorithm>

namespace egret::access {

namespace {
constexpr uint64_t kUnknownCostNs = 200'000;
constexpr uint64_t kLeastCostNs = 20'000;
constexpr uint64_t kMostCostNs = 20'000'000;
constexpr uint64_t kNsPerMs = 1'000'000;
}  // namespace

// The first one of a process is slower than those that follow: memory and code are touched for the first time.
void Admission::learn(Cost& cost, uint64_t ns) {
  const uint64_t bounded = std::clamp<uint64_t>(ns, 1, kMostCostNs);
  if (++cost.seen == 2) cost.mean_ns = bounded;
  if (cost.seen > 2) cost.mean_ns = cost.mean_ns - cost.mean_ns / 8 + bounded / 8;
}

// Until it is known what granting costs, it is taken to cost as much as accepting.
uint64_t Admission::cost_ns() const {
  if (accept_.mean_ns == 0) return kUnknownCostNs;
  return std::clamp(accept_.mean_ns + (grant_.mean_ns == 0 ? accept_.mean_ns : grant_.mean_ns), kLeastCostNs,
                    kMostCostNs);
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
