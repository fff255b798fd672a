// Runs one load on one server, and returns the figures.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "bench/client/address.h"
#include "bench/keyspace.h"
#include "bench/load_spec.h"
#include "bench/tally.h"

namespace egret::bench {

// The figures of one run. In figures per op, an op is one key.
struct LoadResult {
  double ops_per_s = 0;
  double requests_per_s = 0;
  double p50_us = 0;  // latency of requests
  double p99_us = 0;
  double p999_us = 0;
  double max_us = 0;
  // Figures of the measured processes; 0 if none were given.
  double cpu_us_per_op = 0;
  double user_us_per_op = 0;
  double system_us_per_op = 0;
  double cpu_stat_share = 1;  // user + system by /proc/PID/stat as a share of the process clock: 1 when they agree
  double voluntary_per_op = 0;
  double involuntary_per_op = 0;
  // How far the run can be trusted.
  double generator_us_per_op = 0;  // CPU of the generator itself
  double foreign_cpu = 0;          // CPUs used by processes other than the measured ones and the generator
  Counters measured;               // in the window
  Counters total;                  // preload, warm-up and settling included
  std::string first_error;
};

// Blocks for preload, warm-up and duration. Errors of the protocol are in the result; a Status means that the run was
// not possible (no connection, a measured process has ended). `stop` ends it early.
base::Expected<LoadResult> run_load(const LoadSpec& spec, const Keyspace& keyspace, const Address& address,
                                    const std::vector<pid_t>& pids, const std::atomic<bool>& stop);

// What is wrong with a spec, if anything.
base::Status check_spec(const LoadSpec& spec);

}  // namespace egret::bench
