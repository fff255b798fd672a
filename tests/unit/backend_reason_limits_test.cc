// How often a backend logs why peers are turned away.
#include <string>

#include <doctest/doctest.h>

#include "backend/sessions/reason_limits.h"

using egret::backend::ReasonLimits;

namespace {
// Lines of this reason that pass, of 100 at one time.
int passing(ReasonLimits& limits, const std::string& reason) {
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += limits.of(reason).admit(1).passes ? 1 : 0;
  return passed;
}
}  // namespace

TEST_CASE("each reason is logged so often, and hides no other") {
  ReasonLimits limits(3);
  CHECK(passing(limits, "expired") == 3);
  CHECK(passing(limits, "silent") == 3);
  CHECK(passing(limits, "expired") == 0);
}

TEST_CASE("a peer that makes reasons up fills no log, and hides none that was known before") {
  ReasonLimits limits(3);
  CHECK(passing(limits, "expired") == 3);
  int passed = 0;
  for (int i = 0; i < 1000; ++i) passed += passing(limits, "no such frame: " + std::to_string(i));
  CHECK(passed == 3 * static_cast<int>(ReasonLimits::kMaxReasons));
  CHECK(limits.of("expired").admit(20'000'000'000).passes);
}
