// Counters of this proxy's client side. Each worker writes its own; any thread reads and adds up.
#pragma once

#include <atomic>
#include <cstdint>

namespace egret::proxy {

// One writer, many readers: an increment is a load and a store, no locked instruction.
class Counter {
 public:
  void add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void sub(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  // `stats reset` counts from here on; any thread.
  void mark() { mark_.store(get(), std::memory_order_relaxed); }
  uint64_t since_mark() const { return get() - mark_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<uint64_t> mark_{0};
};

// Client connections that are open, accepted but not yet taken over by a worker included.
using OpenConnections = std::atomic<uint32_t>;

struct alignas(64) WorkerStats {
  Counter curr_connections;
  Counter total_connections;
  Counter bytes_read;
  Counter bytes_written;
  // Of the sessions' lanes, copied from time to time (rpc::LaneCounters).
  Counter messages, ops, fetches, refetches, torn, deliveries, wants, rings, timeouts;
};

}  // namespace egret::proxy
