// Measures with a real egret-backend and the proxy's real session code, over shared memory:
//
//   of a backend   one partition, N sessions of N workers; one of them is active
//   of a proxy     N sessions of 16 lanes, as one worker has with N backends of 16 partitions; one of them is active.
//                  They lead to one backend: the worker's side of a session does not know whose other sessions are
//
// Thread: the caller's, which is the proxies' worker. Blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/server/server.h"

namespace egret::bench_fleet {

struct FleetOptions {
  bench::EgretFiles egret;
  std::vector<uint32_t> sessions{1, 10, 100, 1000, 4000};  // of a backend
  std::vector<uint32_t> backends{1, 10, 100};              // of a proxy's worker
  uint32_t lanes = 16;                                     // of each of those
  uint32_t window = 2;
  double seconds = 1;  // of each measurement
};

// What one number of sessions costs.
struct Cost {
  uint32_t sessions = 0;
  uint32_t lanes = 0;  // of each session
  // Counted.
  uint64_t open = 0;                 // sessions that the backend says it has
  uint64_t backend_descriptors = 0;  // of all sessions together; likewise the next
  uint64_t own_descriptors = 0;
  uint64_t region_bytes = 0;  // slots of all sessions, by their grants
  // Measured.
  double open_ms = 0;          // until all were open, 16 handshakes at a time
  double open_backend_us = 0;  // CPU time of the backend for each
  double backend_bytes = 0;    // by which the backend grew, for each session
  double own_bytes = 0;        // by which this process grew
  double idle_backend = 0;     // CPUs used by the backend while nobody asks anything
  double pass_ns = 0;          // of a worker's pass while no session has work
  double keep_alive_ns = 0;    // of asking all sessions to keep alive, which happens twice a second
  double latency_us = 0;       // of one get of one session, median: the other sessions are idle
  double latency_p99_us = 0;
  double active_backend_us = 0;  // CPU time of the backend for each of these gets
};

struct Outcome {
  std::vector<Cost> of_backend, of_proxy;
  std::vector<std::string> left_out;  // numbers for which this system has too few descriptors, with the arithmetic
};

// What a session must cost, by the documents (docs/benchmarks/scale.md).
struct CostModel {
  static constexpr uint64_t kDescriptorsOfBackend = 6;  // connection, both wake-ups, slots (responses twice)
  static constexpr uint64_t kDescriptorsOfProxy = 3;    // connection, both wake-ups; the slots are mapped
  static uint64_t region_bytes(uint64_t sessions, uint32_t lanes, uint32_t window, uint64_t request_slot,
                               uint64_t response_slot) {
    return sessions * lanes * (64 + window * (request_slot + response_slot));
  }
};
inline constexpr uint32_t kRequestSlot = 1024;
inline constexpr uint32_t kResponseSlot = 1024;

// After an error `outcome` has what was measured before it.
base::Status measure(const FleetOptions& options, const std::atomic<bool>& stop, Outcome& outcome);

}  // namespace egret::bench_fleet
