// Measures in turn: the store in this process, and the backend over slots with different numbers of sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/server/server.h"

namespace egret::bench_rpc {

struct MeasureOptions {
  bench::EgretFiles egret;
  uint32_t keys = 12'000'000;
  uint32_t value_size = 32;
  uint32_t ops_per_set = 20;  // one op of so many is a set; 0: none
  uint32_t ops_per_message = 0;
  uint32_t partitions = 1;
  uint32_t window = 32;
  std::vector<uint32_t> sessions{1, 16, 256, 1024, 4096};
  uint32_t turn_ms = 1;  // how long each session is active, where sessions are active in turn
  double seconds = 1;    // of each measurement
  int rounds = 5;
  bool measures_store = true;  // in this process, too
};

// One measurement.
struct Round {
  double cpu_ns = 0;   // CPU time of the backend's threads per op
  double wall_ns = 0;  // wall time per op and partition
  double client_ns = 0;
  double waits = 0;  // share of the time in which the client had nothing to do
  double ops_per_message = 0;
  double others_busy = 0;  // CPUs used by other processes than backend and client
  double pass_ns = 0;      // of a pass of the client while nothing is under way; and if it touched every session
  double touching_all_ns = 0;
};

// A number of sessions of which one is active: always the same one, or each in turn.
struct Shape {
  uint32_t sessions = 1;
  bool in_turn = false;
  std::vector<Round> rounds{};
  uint64_t granted = 0;   // bytes of a session's region
  uint64_t resident = 0;  // bytes by which the backend grew, from no session to so many
};

struct Outcome {
  std::vector<double> store_ns;  // CPU time of an op of the store in this process, in each round
  std::vector<Shape> shapes;     // the first has the fewest sessions
  uint64_t cut = 0;              // gets that are not counted, since their value did not fit the message
};

// After an error `outcome` has what was measured before it. `errors` counts wrong answers.
base::Status measure(const MeasureOptions& options, const std::atomic<bool>& stop, Outcome& outcome, uint64_t& errors);

}  // namespace egret::bench_rpc
