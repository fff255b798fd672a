// Numbers that one thread writes and any thread reads, without atomic read-modify-write instructions.
#pragma once

#include <atomic>
#include <cstdint>

namespace egret::base {

// A number that one thread increases (or decreases). A reset stores the present value as a mark instead of writing the
// number, so any thread may reset.
class Counter {
 public:
  Counter() = default;
  // The copy has the value of that moment.
  Counter(const Counter& other) : value_(other.get()), mark_(other.mark_.load(std::memory_order_relaxed)) {}
  Counter& operator=(const Counter&) = delete;

  void add(uint64_t n = 1) { value_.store(get() + n, std::memory_order_relaxed); }
  void sub(uint64_t n) { value_.store(get() - n, std::memory_order_relaxed); }
  // Adds another counter's value and mark.
  void add(const Counter& other) {
    const uint64_t mark = other.mark_.load(std::memory_order_acquire);
    mark_.store(mark_.load(std::memory_order_relaxed) + mark, std::memory_order_relaxed);
    add(other.get());
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  // `stats reset`: since_mark() counts from now on. Any thread.
  void mark() { mark_.store(get(), std::memory_order_release); }
  // Reads the mark first: a value that is read before a mark is set could be less than that mark.
  uint64_t since_mark() const {
    const uint64_t mark = mark_.load(std::memory_order_acquire);
    return get() - mark;
  }

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<uint64_t> mark_{0};
};

// A present value, not a count of events; a reset does not change it.
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
