// Measures with a real egret-backend and the proxy's real session code:
//
//   of a backend   N sessions of N workers; one of them is active
//   of a proxy     N sessions of 16 lanes, as one worker has with N backends of 16 partitions; one of them is active.
//                  They lead to one backend: the worker's side of a session does not know whose other sessions are
//   a restart      the backend is killed and started again: when all N are back, after how many attempts, and how one
//                  that is back is served meanwhile (storm.h)
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
  std::string at = "shm";  // the transport: shm, tcp, or an address (rdma:HOST:PORT) at which the backend is to listen
  // Addresses that sessions come from, of 127.0.0.0/8; more than one only over tcp: then the backend listens at all of this
  // host's, with a secret.
  uint32_t hosts = 1;
  std::vector<uint32_t> sessions{1, 10, 100, 1000, 4000};  // of a backend
  uint32_t partitions = 1;                                 // of that backend: lanes of each session
  std::vector<uint32_t> backends{1, 10, 100};              // of a proxy's worker
  uint32_t lanes = 16;                                     // of each of those
  uint32_t window = 2;                                     // as a proxy's idle_window
  uint32_t slot_size = 1216;                               // as its idle_slot_size
  std::vector<uint32_t>
      restarts;        // numbers of sessions for which the backend is restarted, too; they are among `sessions`
  double seconds = 1;  // of each measurement
};

// What one number of sessions costs.
struct Cost {
  uint32_t sessions = 0;
  uint32_t lanes = 0;  // of each session
  // Counted.
  uint64_t open = 0;                 // sessions that are
  uint64_t backend_descriptors = 0;  // of all sessions together; likewise the next
  uint64_t own_descriptors = 0;
  uint64_t lane_rings = 0;  // of all sessions, by their grants: descriptors that they have beside those of any session
  uint64_t region_bytes = 0;    // slots of all sessions, by their grants
  uint64_t backend_pinned = 0;  // bytes, of all sessions together
  uint64_t own_pinned = 0;
  // Measured.
  double open_ms = 0;          // until all were open, 16 handshakes at a time
  double open_backend_us = 0;  // CPU time of the backend for each
  double backend_bytes = 0;    // by which the backend grew, for each session
  double own_bytes = 0;        // by which this process grew
  double idle_backend = 0;     // CPUs used by the backend while nobody asks anything, keep-alives included
  double idle_own = 0;         // CPUs used by this process for its keep-alives
  double pass_ns = 0;          // of a worker's pass while no session has work
  double latency_us = 0;       // of one get of one session, median: the other sessions are idle
  double latency_p99_us = 0;
  double active_backend_us = 0;  // CPU time of the backend for each of these gets
};

// What a restart of the backend of so many sessions costs.
struct Restart {
  uint32_t sessions = 0;
  double back_ms = 0;                           // from the moment that the first one is back until the last one is
  double half_ms = 0;                           // until half of them are
  uint32_t attempts = 0;                        // most of one session, of those that reached the backend
  double backend_us = 0;                        // CPU time of the backend for each session
  uint64_t served = 0;                          // gets of one further session meanwhile
  double served_p50_us = 0, served_p99_us = 0;  // how long they took
};

struct Outcome {
  std::vector<Cost> of_backend, of_proxy;
  std::vector<Restart> restarts;
  std::vector<std::string> left_out;  // numbers for which this system has too few descriptors, with the arithmetic
};

// What a session must cost, by the documents (docs/benchmarks/scale.md).
struct CostModel {
  uint64_t backend_descriptors = 0;  // of a session; over shm besides one for each further lane that has a ring
  uint64_t own_descriptors = 0;
  // Over shm: connection, both wake-ups, what shows whether a client has let go; the client's: the first three. Over tcp: the
  // connection, and what waits for it. Over rdma: events of the connection manager, completions, the device's alarm, all of
  // them together.
  static CostModel of(const std::string& at);
  static uint64_t region_bytes(uint64_t sessions, uint32_t lanes, uint32_t window, uint64_t slot) {
    return sessions * lanes * (64 + window * 2 * slot);
  }
};

// After an error `outcome` has what was measured before it.
base::Status measure(const FleetOptions& options, const std::atomic<bool>& stop, Outcome& outcome);

}  // namespace egret::bench_fleet
