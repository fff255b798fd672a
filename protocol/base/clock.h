// Time, injectable. Durations are monotonic nanoseconds; expiry deadlines are wall seconds.
#pragma once

#include <cstdint>

namespace egret::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds of a clock that never steps back. Any thread.
  virtual uint64_t now_ns() const = 0;
  // Seconds since the Unix epoch, derived so that it never steps back within one process. Any thread.
  virtual int64_t unix_seconds() const = 0;
};

// The machine's clocks. unix_seconds() is the wall clock read once at start plus monotonic time since.
class SystemClock final : public Clock {
 public:
  SystemClock();
  uint64_t now_ns() const override;
  int64_t unix_seconds() const override;

 private:
  uint64_t start_ns_;
  uint64_t start_unix_ns_;
};

// A clock that tests and the simulator set by hand.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t unix_start = 1'700'000'000) : unix_start_(unix_start) {}
  uint64_t now_ns() const override { return now_ns_; }
  int64_t unix_seconds() const override { return unix_start_ + static_cast<int64_t>(now_ns_ / 1'000'000'000); }
  void advance_ns(uint64_t ns) { now_ns_ += ns; }
  void advance_seconds(uint64_t seconds) { now_ns_ += seconds * 1'000'000'000; }

 private:
  uint64_t now_ns_ = 1;
  int64_t unix_start_;
};

}  // namespace egret::base
