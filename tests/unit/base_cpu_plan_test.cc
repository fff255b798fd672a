// The plan of CPUs: how many threads each daemon starts, and when each of them can have a CPU of its own.
#include <doctest/doctest.h>

#include "base/cpu_plan.h"

using namespace egret::base;

TEST_CASE("threads that are started where no number was set") {
  CHECK(auto_workers(1) == 1);
  CHECK(auto_workers(7) == 1);
  CHECK(auto_workers(8) == 2);
  CHECK(auto_workers(64) == 4);
  CHECK(max_auto_partitions(1) == 1);
  CHECK(max_auto_partitions(3) == 1);
  CHECK(max_auto_partitions(64) == 32);
}

TEST_CASE("both daemons decide alike, on any number of CPUs") {
  for (uint32_t cpus = 1; cpus <= 512; ++cpus) {
    CAPTURE(cpus);
    const CpuPlan proxy = CpuPlan::of_proxy(cpus, auto_workers(cpus));
    const CpuPlan backend = CpuPlan::of_backend(cpus, max_auto_partitions(cpus));
    CHECK(proxy.has_enough_cpus() == backend.has_enough_cpus());
    CHECK(proxy.has_enough_cpus() == (cpus >= 3));
  }
}

TEST_CASE("one CPU is left for everything else") {
  CHECK(CpuPlan{.cpus = 6, .workers = 2, .partitions = 3}.has_enough_cpus());
  CHECK_FALSE(CpuPlan{.cpus = 6, .workers = 3, .partitions = 3}.has_enough_cpus());
  CHECK_FALSE(CpuPlan{.cpus = 6, .workers = UINT32_MAX, .partitions = 3}.has_enough_cpus());
}

TEST_CASE("a number that was set counts in full") {
  CHECK(CpuPlan::of_proxy(16, 7).has_enough_cpus());
  CHECK_FALSE(CpuPlan::of_proxy(16, 8).has_enough_cpus());
  CHECK(CpuPlan::of_backend(16, 11).has_enough_cpus());
  CHECK_FALSE(CpuPlan::of_backend(16, 12).has_enough_cpus());
}
