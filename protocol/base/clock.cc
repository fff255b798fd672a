#include "base/clock.h"

#include <ctime>

namespace egret::base {

namespace {
uint64_t read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
}  // namespace

SystemClock::SystemClock() : start_ns_(read_clock(CLOCK_MONOTONIC)), start_unix_ns_(read_clock(CLOCK_REALTIME)) {}

uint64_t SystemClock::now_ns() const {
  return read_clock(CLOCK_MONOTONIC);
}

int64_t SystemClock::unix_seconds() const {
  return static_cast<int64_t>((start_unix_ns_ + (now_ns() - start_ns_)) / 1'000'000'000);
}

}  // namespace egret::base
