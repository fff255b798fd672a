// The generator's clock: CLOCK_MONOTONIC in nanoseconds, inline because it is read once per answer.
#pragma once

#include <cstdint>
#include <ctime>

namespace egret::bench {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

inline uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t seconds_to_ns(double seconds) {
  return static_cast<uint64_t>(seconds * static_cast<double>(kNsPerSecond));
}

}  // namespace egret::bench
