#include "access/admission.h"

#include <algorithm>

namespace egret::access {

namespace {
constexpr uint64_t kUnknownCostNs = 200'000;
constexpr uint64_t kUnknownPaceNs = 1'200'000;
constexpr uint64_t kLeastCostNs = 20'000;
constexpr uint64_t kMostCostNs = 20'000'000;
constexpr uint64_t kRemembered = 16;  // steps that the moving mean is about
constexpr uint64_t kNsPerMs = 1'000'000;
}  // namespace

// The first one of a process is slower on the control thread than those that follow: memory and code are touched for the
// first time. Of the next few the plain mean counts, then the moving one: set-up threads that began at once finish at once.
void Admission::learn(Step& step, const StepCost& cost) {
  ++step.seen;
  const auto learn_part = [](uint64_t& mean, uint64_t ns, uint64_t seen) {
    const uint64_t weight = std::min(seen, kRemembered);
    if (weight > 0) mean = (mean * (weight - 1) + std::min(ns, kMostCostNs)) / weight;
  };
  learn_part(step.mean.control_ns, cost.control_ns, step.seen - 1);
  learn_part(step.mean.setup_ns, cost.setup_ns, step.seen);
}

// Until it is known what granting costs, it is taken to cost as much as accepting.
uint64_t Admission::session_ns() const {
  if (!is_known()) return kUnknownCostNs;
  const StepCost& grant = grant_.seen < 2 ? accept_.mean : grant_.mean;
  const uint64_t control_ns = accept_.mean.control_ns + grant.control_ns;
  const uint64_t setup_ns = accept_.mean.setup_ns + grant.setup_ns;
  return std::clamp(std::max(control_ns, setup_ns), kLeastCostNs, kMostCostNs);
}

uint32_t Admission::come_back_ms(uint64_t now_ns, size_t under_way, bool came_back, bool is_accepted) {
  const uint64_t cost = session_ns();
  // While others have moments there is room for them.
  const size_t most = is_accepted ? kMostAccepted : kMostUnderWay;
  const size_t at_once = next_ns_ > now_ns ? kLeastUnderWay : std::clamp<size_t>(kSoonNs / cost, kLeastUnderWay, most);
  const size_t with_returners = is_accepted ? kMostAcceptedWithReturners : kMostWithReturners;
  if (under_way < (came_back ? with_returners : at_once)) return 0;
  // Moments that are given too close together cost those who come in vain a third attempt.
  const uint64_t expected = is_known() ? cost : kUnknownPaceNs;
  const uint64_t pace = std::max(expected + expected / 8, kQuickestPaceNs);
  constexpr uint64_t kLongestNs = kLongestPauseMs * kNsPerMs;
  const uint64_t next_ns = std::max(next_ns_, now_ns + kFirstMomentNs + under_way * pace) + pace;
  if (next_ns - now_ns > kLongestNs) {  // so many that even their moments are shared
    return static_cast<uint32_t>((kLongestNs / 2 + late_++ * pace % (kLongestNs / 2)) / kNsPerMs);
  }
  next_ns_ = next_ns;
  return static_cast<uint32_t>((next_ns - now_ns + kNsPerMs - 1) / kNsPerMs);
}

}  // namespace egret::access
