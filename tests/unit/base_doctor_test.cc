// How findings of start-up checks are printed.
#include <string>

#include <doctest/doctest.h>

#include "base/service/doctor.h"

using namespace egret::base;

TEST_CASE("a finding is one line: verdict, subject, how it is, and what to do") {
  CHECK(to_line({Verdict::kOk, "memlock", "no limit", ""}) == "ok   memlock: no limit");
  CHECK(to_line({Verdict::kWarning, "a", "b", "do c"}) == "warn a: b => do c");
  CHECK(to_line({Verdict::kFailure, "a", "b", "do c"}) == "FAIL a: b => do c");
  CHECK(to_line({Verdict::kFailure, "a", "b\nok   forged", "c"}) == "FAIL a: b\\nok   forged => c");
}

TEST_CASE("only a failure fails") {
  Findings findings;
  CHECK_FALSE(findings.has_failure());
  findings.ok("a", "b");
  findings.warn("a", "b", "c");
  CHECK_FALSE(findings.has_failure());
  findings.fail("a", "b", "c");
  CHECK(findings.has_failure());
  REQUIRE(findings.all().size() == 3);
  CHECK(findings.all()[1].advice == "c");
}

TEST_CASE("open files: what is needed beside what there may be") {
  Findings findings;
  check_open_files(10, "5 sessions x 2", findings);
  check_open_files(uint64_t{1} << 40, "a dream", findings);
  REQUIRE(findings.all().size() == 2);
  CHECK(findings.all()[0].verdict == Verdict::kOk);
  CHECK(findings.all()[0].what.find("10 may be needed: 5 sessions x 2") != std::string::npos);
  CHECK(findings.all()[1].verdict == Verdict::kWarning);
  CHECK(findings.all()[1].advice.find("LimitNOFILE=1099511627776") != std::string::npos);
}
