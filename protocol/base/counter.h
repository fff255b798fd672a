// Numbers that one thread writes and any thread reads, without a locked instruction on either side.
#pragma once

#include <atomic>
#include <cstdint>

namespace egret::base {

// Grows (or, for what comes and goes, shrinks); one writer. A reset does not clear it but remembers where it stood, so
// that whoever resets need not be the writer.
class Counter {
 public:
  Counter() = default;
  // A copy is what had been counted by then.
  Counter(const Counter& other) : value_(other.get()), mark_(other.mark_.load(std::memory_order_relaxed)) {}
  Counter& operator=(const Counter&) = delete;

  void add(uint64_t n = 1) { value_.store(get() + n, std::memory_order_relaxed); }
  void sub(uint64_t n) { value_.store(get() - n, std::memory_order_relaxed); }
  // Adds what another counted, resets included.
  void add(const Counter& other) {
    const uint64_t mark = other.mark_.load(std::memory_order_acquire);
    mark_.store(mark_.load(std::memory_order_relaxed) + mark, std::memory_order_relaxed);
    add(other.get());
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  // `stats reset` counts from here on; any thread.
  void mark() { mark_.store(get(), std::memory_order_release); }
  // The mark is read first: a value read before somebody marks could be less than that mark.
  uint64_t since_mark() const {
    const uint64_t mark = mark_.load(std::memory_order_acquire);
    return get() - mark;
  }

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<uint64_t> mark_{0};
};

// What is, rather than what has been; a reset does not touch it.
class Gauge {
 public:
  Gauge() = default;
  Gauge(const Gauge& other) : value_(other.get()) {}
  Gauge& operator=(const Gauge&) = delete;

  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace egret::base
