// --doctor about huge pages and the store's files.
#include <string>

#include <doctest/doctest.h>

#include "backend/doctor.h"

using namespace egret::backend;
using egret::base::Findings;
using egret::base::Verdict;

namespace {

Config config_of(uint64_t memory, uint32_t partitions) {
  Config config;
  config.memory = memory;
  config.partitions = partitions;
  config.item_size_max = 1 << 20;
  config.max_sessions = 1;
  return config;
}

// The one finding on huge pages, as a line.
std::string said(const HugePages& offered, const Config& config) {
  Findings findings;
  check_huge_pages(offered, config, findings);
  REQUIRE(findings.all().size() == 1);
  return to_line(findings.all()[0]);
}

}  // namespace

TEST_CASE("explicit huge pages are counted against what all partitions need, each in whole pages") {
  const Config config = config_of((64u << 20) + 2, 2);
  CHECK(said({.free = 34, .makes_transparent = false}, config) ==
        "ok   huge pages: 34 explicit ones are free, memory is 34");
  CHECK(said({.free = 33, .makes_transparent = true}, config) ==
        "ok   huge pages: transparent ones (33 explicit ones are free, memory is 34)");
  CHECK(
      said({.free = 33, .makes_transparent = false}, config).starts_with("warn huge pages: 33 explicit ones are free"));
  CHECK(said({.free = 33, .makes_transparent = false}, config).find("vm.nr_hugepages=34") != std::string::npos);
}

TEST_CASE("a store kept on a disk is warned of when the backend starts, one in shared memory is not") {
  Config config = config_of(1 << 20, 1);
  const auto warnings = [&](const std::string& path) {
    config.warm_restart = path;
    std::string lines;
    const Findings findings = check_start(config);
    for (const auto& finding : findings.all()) {
      if (finding.verdict != Verdict::kOk && finding.subject == "warm_restart") lines += to_line(finding);
    }
    return lines;
  };
  CHECK(warnings("").empty());
  CHECK(warnings("/dev/shm/egret-doctor-test").empty());
  CHECK(warnings("/proc/egret-doctor-test").find("will be written to disk") != std::string::npos);
  config.memory = uint64_t{1} << 50;
  CHECK(warnings("/dev/shm/egret-doctor-test").find("has room for ") != std::string::npos);
}
