// How the CPUs of a host are shared by the threads that Egret keeps busy: the proxy's workers and the backend's
// partitions. From it both daemons take how many threads they start and whether each can have a CPU of its own.
//
// A daemon knows its own threads only. It assumes that the other one runs on the same host, with the number of threads
// it chooses by itself (for the backend: the most it would choose). So both come to the same answer on a host where
// neither number was set.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::base {

// The automatic number of workers: one for each four CPUs, 1 to 4.
constexpr uint32_t auto_workers(uint32_t cpus) {
  return std::clamp(cpus / 4, 1u, 4u);
}

// The largest automatic number of partitions: half of the CPUs, at least 1. A backend with little memory has fewer.
constexpr uint32_t max_auto_partitions(uint32_t cpus) {
  return std::max(1u, cpus / 2);
}

struct CpuPlan {
  uint32_t cpus = 0;
  uint32_t workers = 0;
  uint32_t partitions = 0;

  static constexpr CpuPlan of_proxy(uint32_t cpus, uint32_t workers) {
    return {cpus, workers, max_auto_partitions(cpus)};
  }
  static constexpr CpuPlan of_backend(uint32_t cpus, uint32_t partitions) {
    return {cpus, auto_workers(cpus), partitions};
  }

  // Whether each of these threads can have a CPU of its own, with one left for everything else on the host.
  constexpr bool has_enough_cpus() const { return uint64_t{workers} + partitions + 1 <= cpus; }
};

}  // namespace egret::base
