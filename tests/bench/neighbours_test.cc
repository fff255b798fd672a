// Neighbours: child processes that use CPUs as long as their owner exists.
#include "bench/server/neighbours.h"

#include <csignal>
#include <ctime>

#include <doctest/doctest.h>

#include "bench/server/process_meter.h"

using namespace egret::bench;

TEST_CASE("each of them spins, and none outlives its owner") {
  std::vector<pid_t> pids;
  {
    const auto neighbours = Neighbours::start(3);
    REQUIRE(neighbours);
    pids = neighbours.value().pids();
    REQUIRE(pids.size() == 3);
    constexpr timespec kPause{0, 10'000'000};
    for (const pid_t pid : pids) {
      // Only time on a CPU counts, which each of them gets sooner or later.
      for (int i = 0; i < 1000 && read_process_cost({pid}).value().cpu_ns < 20'000'000; ++i)
        ::nanosleep(&kPause, nullptr);
      CHECK(read_process_cost({pid}).value().cpu_ns >= 20'000'000);
    }
  }
  for (const pid_t pid : pids) CHECK(::kill(pid, 0) != 0);
}
