#include "bench_cache/stalls.h"

#include <vector>

#include <doctest/doctest.h>

using namespace egret::bench_cache;

namespace {

constexpr uint64_t kMs = 1'000'000;

void note(Stalls& stalls, uint64_t due_ms, uint64_t latency_ms) {
  stalls.note({.latency_ns = latency_ms * kMs, .due_ns = due_ms * kMs, .at_items = due_ms});
}

std::vector<uint64_t> latencies_ms(const Stalls& stalls) {
  std::vector<uint64_t> found;
  for (const Stall& each : stalls.longest()) found.push_back(each.latency_ns / kMs);
  return found;
}

}  // namespace

TEST_CASE("gets near a slower one are its stall, and the slowest stands for it") {
  Stalls stalls;
  note(stalls, 1000, 10);
  note(stalls, 1001, 50);
  note(stalls, 1002, 49);
  note(stalls, 1400, 20);
  CHECK(latencies_ms(stalls) == std::vector<uint64_t>{50});
  CHECK(stalls.longest().front().at_items == 1001);
}

TEST_CASE("a get every millisecond does not make one stall of the whole run") {
  Stalls stalls;
  for (uint64_t ms = 0; ms < 10'000; ++ms) note(stalls, ms, ms == 2000 ? 80 : ms == 7000 ? 90 : 1);
  CHECK(latencies_ms(stalls).size() == Stalls::kMost);
  CHECK(latencies_ms(stalls)[0] == 90);
  CHECK(latencies_ms(stalls)[1] == 80);
  CHECK(latencies_ms(stalls)[2] == 1);
}

TEST_CASE("only the longest are kept, the longest first") {
  Stalls stalls;
  uint64_t due_ms = 0;
  for (const uint64_t latency : {3, 9, 1, 7, 5, 8, 2}) note(stalls, due_ms += 1000, latency);
  CHECK(latencies_ms(stalls) == std::vector<uint64_t>{9, 8, 7, 5, 3});
}
