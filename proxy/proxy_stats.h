// Counters of this proxy's client side. Each worker writes its own; any thread reads and adds up.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/counter.h"
#include "rpc/lane_counters.h"

namespace egret::proxy {

using base::Counter;

// Client connections that are open, accepted but not yet taken over by a worker included.
using OpenConnections = std::atomic<uint32_t>;

struct alignas(64) WorkerStats {
  Counter curr_connections;
  Counter total_connections;
  Counter bytes_read;
  Counter bytes_written;
  // Of this worker's sessions, by backend. The worker fills it in before it starts, and outlives all that read it.
  std::vector<rpc::SessionCounters*> sessions;
};

}  // namespace egret::proxy
