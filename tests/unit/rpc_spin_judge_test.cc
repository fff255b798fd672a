// When polling before sleep is given up, and when it is taken up again.
#include <doctest/doctest.h>

#include "rpc/idle/spin_judge.h"

using egret::rpc::SpinJudge;

namespace {
// Of so many waits that end like this, those that were polled for.
int polled(SpinJudge& judge, int waits, bool paid) {
  int count = 0;
  for (int i = 0; i < waits; ++i) {
    if (!judge.begins()) continue;
    ++count;
    judge.ends(paid);
  }
  return count;
}
}  // namespace

TEST_CASE("as long as waits end in time, every one is polled for") {
  SpinJudge judge;
  CHECK(polled(judge, 1000, true) == 1000);
}

TEST_CASE("one wait that takes too long does not end polling") {
  SpinJudge judge;
  polled(judge, 100, true);
  polled(judge, 1, false);
  CHECK(judge.begins());
}

TEST_CASE("when waits take too long, only a few are polled for") {
  SpinJudge judge;
  const int at_first = polled(judge, 20, false);
  CHECK(at_first < 10);
  CHECK(polled(judge, 100 * SpinJudge::kProbe, false) == 100);
}

TEST_CASE("polling is taken up again when it pays again") {
  SpinJudge judge;
  polled(judge, 10'000, false);
  polled(judge, 20 * SpinJudge::kProbe, true);
  CHECK(polled(judge, 1000, true) == 1000);
}

TEST_CASE("two waits in three that end in time are enough") {
  SpinJudge judge;
  int count = 0;
  for (int i = 0; i < 3000; ++i) {
    if (!judge.begins()) continue;
    ++count;
    judge.ends(i % 3 != 0);
  }
  CHECK(count == 3000);
}
