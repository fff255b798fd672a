// Measures CPU time and context switches of other processes over an interval.
//
// CPU time comes from the process's clock (clock_getcpuclockid), which counts nanoseconds of all its threads, including
// ended ones; utime and stime of /proc/PID/stat (steps of 10 ms) split and cross-check it. The kernel charges a running
// thread only at timer ticks, so a reading may lag by one tick (1 to 4 ms) per thread. Context switches are the sum
// over the threads that exist when they are read.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace egret::bench {

struct ProcessCost {
  uint64_t wall_ns = 0;  // monotonic, when it was read; in a difference: the interval
  uint64_t cpu_ns = 0;   // of all processes, user and system
  uint64_t user_ns = 0;  // from /proc/PID/stat
  uint64_t system_ns = 0;
  uint64_t voluntary = 0;  // context switches
  uint64_t involuntary = 0;
  uint64_t own_cpu_ns = 0;       // of this process, the generator
  uint64_t machine_busy_ns = 0;  // of all CPUs, by whomever

  ProcessCost operator-(const ProcessCost& before) const;
};

// Reads the sum over `pids` now. Fails when one of them does not exist.
base::Expected<ProcessCost> read_process_cost(const std::vector<pid_t>& pids);

// Resident bytes of a process; 0 if it does not exist.
uint64_t resident_bytes(pid_t pid);

}  // namespace egret::bench
