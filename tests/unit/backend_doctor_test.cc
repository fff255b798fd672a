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
  config.quota.sessions = {1, ""};
  config.quota.memory = {64 << 20, "a sum"};
  config.needs.least_bytes = 100 << 10;
  config.needs.most_bytes = 1 << 20;
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

TEST_CASE("the doctor and --check-config show how many sessions there may be, how much memory for them, and why") {
  Config config = config_of(64u << 20, 2);
  config.quota.sessions = {16320, "(65536 descriptors - 256) / 4"};
  const auto line = [&](const std::string& subject) {
    std::string found;
    const Findings findings = examine(config);
    for (const auto& finding : findings.all()) found += finding.subject == subject ? to_line(finding) : "";
    return found;
  };
  CHECK(line("sessions") == "ok   sessions: at most 16320 (max_sessions, auto): (65536 descriptors - 256) / 4");
  CHECK(line("slots") ==
        "ok   slots: at most 64MiB (session_memory_total, auto): a sum; room for 655 idle sessions of 100KiB or 64 of "
        "1MiB "
        "(session_memory)");
  config.quota.sessions = {9, "(300 descriptors - 264) / 4"};
  CHECK(line("sessions").starts_with("warn sessions: at most 9 (max_sessions, auto): (300 descriptors"));
  config.quota.sessions = {9, ""};
  CHECK(line("sessions") == "ok   sessions: at most 9 (max_sessions)");
  config.quota.memory = {uint64_t{8} << 30, ""};
  config.room = {.memory = uint64_t{8} << 30, .memory_source = "this host's"};
  config.needs.other_memory = 1;
  CHECK(line("slots").find("; with `memory` that is more than this host's 8GiB => lower session_memory_total") !=
        std::string::npos);
  CHECK(explain_limits(config) ==
        "max_sessions: 9\nsessions_per_peer: as much as stays free for others (auto)\nsession_memory_total: 8GiB\n"
        "session_memory_per_peer: as much as stays free for others (auto)\n");
  config.quota.memory = {64 << 20, "a sum"};
  CHECK(explain_limits(config).find("session_memory_total: 64MiB (auto: a sum)\n") != std::string::npos);
}

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
