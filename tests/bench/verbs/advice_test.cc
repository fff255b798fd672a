// The advice for invented rates and for those of the paper.
#include "bench_verbs/advice.h"

#include <doctest/doctest.h>

using namespace egret::bench_verbs;

namespace {

// 004's device, roughly: 11.26 M in-bound and 2.11 M out-bound until the link is full (3.4 GB/s).
Measured paper() {
  Measured measured;
  for (uint32_t size : {8u, 32u, 128u, 256u, 512u, 1024u, 2048u, 4096u}) {
    const double full = 3.4e9 / size;
    measured.inbound_read.push_back({size, std::min(11.26e6, full)});
    measured.outbound_write.push_back({size, std::min(2.11e6, full)});
  }
  measured.peak_outbound_write = 2.11e6;
  measured.read_us = 1.5;
  measured.fetch_us = 3;
  measured.fetch_rate_of_thread = 1e6;
  measured.measured_depth = 16;
  measured.read_depth = 16;
  measured.server_threads = 16;
  return measured;
}

std::vector<ResultShare> results(const std::string& text) {
  std::string complaint;
  auto parsed = parse_results(text, complaint);
  REQUIRE(complaint.empty());
  return parsed;
}

}  // namespace

TEST_CASE("small results: the smallest F, since more bytes only cost rate") {
  const Advice advice = advise(paper(), results("32"));
  CHECK(advice.fetch == 256);
  CHECK(advice.candidates.front().covered == doctest::Approx(1));
  CHECK(advice.candidates.front().score == doctest::Approx(11.26e6));
}

TEST_CASE("F covers a size when its share outweighs what the longer READ costs the others") {
  // At 384 the READ rate is between 11.26 M (256) and 6.64 M (512): 8.95 M. All fit: 8.95 M, against at 256
  // 0.9 × 11.26 M + 0.1 × 5.63 M = 10.7 M, or 0.1 × 11.26 + 0.9 × 5.63 = 6.19 M when the larger are many.
  CHECK(advise(paper(), results("32:0.9,300:0.1")).fetch == 256);
  CHECK(advise(paper(), results("32:0.1,300:0.9")).fetch == 384);
}

TEST_CASE("a value fits F only with the header and the result's head") {
  CHECK(advise(paper(), results("208")).candidates.front().covered == doctest::Approx(1));
  CHECK(advise(paper(), results("209")).candidates.front().covered == doctest::Approx(0));
}

TEST_CASE("results that fit no F leave it small") {
  const Advice advice = advise(paper(), results("100000"));
  CHECK(advice.fetch == 256);
  CHECK(advice.candidates.back().fetch == 1024);
  CHECK(advice.candidates.back().covered == 0);
}

TEST_CASE("R is the paper's 5 on the paper's figures") {
  const Advice advice = advise(paper(), results("32"));
  CHECK(advice.refetch_budget_us == doctest::Approx(7.58).epsilon(0.01));
  CHECK(advice.refetches == 5);
}

TEST_CASE("R is never 0, and never more than the option takes") {
  Measured measured = paper();
  measured.read_us = 100;
  CHECK(advise(measured, results("32")).refetches == 1);
  measured.read_us = 1e-4;
  CHECK(advise(measured, results("32")).refetches == kMaxRefetches);
  measured.peak_outbound_write = 0;
  CHECK(advise(measured, results("32")).refetches == 0);  // nothing measured: nothing suggested
}

TEST_CASE("the window is what fills the round trip, rounded up, within the option's bounds") {
  Measured measured = paper();
  CHECK(advise(measured, results("32")).window == 3);
  measured.fetch_rate_of_thread = 5.1e6;
  Advice advice = advise(measured, results("32"));
  CHECK(advice.window == 16);
  CHECK(advice.depth_was_the_limit);
  CHECK(advice.queue_pairs == 1);
  measured.fetch_rate_of_thread = 6e6;
  CHECK(advise(measured, results("32")).queue_pairs == 2);
  measured.fetch_rate_of_thread = 1e9;
  CHECK(advise(measured, results("32")).window == kMaxWindow);
  measured.fetch_rate_of_thread = 1;
  CHECK(advise(measured, results("32")).window == kMinWindow);
}

TEST_CASE("where in-bound and out-bound converge") {
  CHECK(advise(paper(), results("32")).converge_at == 2048);
  Measured same = paper();
  same.outbound_write = same.inbound_read;
  CHECK(advise(same, results("32")).converge_at == 8);
  for (RateBySize& each : same.outbound_write) each.ops_per_s /= 2;
  CHECK(advise(same, results("32")).converge_at == 0);
}

TEST_CASE("F grows beyond 1 KiB where the results do, as far as READs were measured") {
  // A second READ would halve the rate; one of 2 KiB has two thirds of that of 1 KiB.
  Measured measured = paper();
  for (RateBySize& each : measured.inbound_read) each.ops_per_s = each.size <= 1024 ? 6e6 : 4e6;
  CHECK(advise(measured, results("2000")).fetch == 2048);
  CHECK(advise(measured, results("32:0.95,2000:0.05")).fetch == 256);
  CHECK(advise(measured, results("4096")).fetch == 256);  // 4,144 B were not measured
}

TEST_CASE("Q* is where in-bound READs fall below out-bound WRITEs for good, in sessions") {
  Measured measured = paper();
  measured.by_pairs = {{1, 2e6, 1e6}, {64, 9e6, 10e6}, {256, 9e6, 8e6}, {1024, 5e6, 8e6}, {4096, 2e6, 8e6}};
  Advice advice = advise(measured, results("32"));
  CHECK(advice.has_crossing);
  CHECK(advice.pairs_most == 256);
  CHECK(advice.sessions_most == 256);
  measured.fetch_rate_of_thread = 6e6;  // two queue pairs a session
  CHECK(advise(measured, results("32")).sessions_most == 128);
  // One published ConnectX-6: below from the fewest pairs on.
  measured = paper();
  measured.by_pairs = {{32, 83e6, 123e6}, {512, 42e6, 122e6}, {4096, 21e6, 111e6}};
  advice = advise(measured, results("32"));
  CHECK(advice.has_crossing);
  CHECK(advice.sessions_most == 32);
  measured.by_pairs = {{32, 12e6, 2e6}, {512, 9e6, 2e6}};
  CHECK_FALSE(advise(measured, results("32")).has_crossing);
  measured.by_pairs.clear();
  CHECK_FALSE(advise(measured, results("32")).has_crossing);
}

TEST_CASE("spin is how long nearly every fetch takes, and a wake-up") {
  Measured measured = paper();
  CHECK(advise(measured, results("32")).spin_us == 0);  // nothing measured: nothing suggested
  measured.fetch_p99_us = 4.2;
  measured.wake_us = 3.5;
  CHECK(advise(measured, results("32")).spin_us == 8);
  measured.wake_us = 1e9;
  CHECK(advise(measured, results("32")).spin_us == kMostSpinUs);
}

TEST_CASE("rates between measured sizes are interpolated, beyond them the nearest") {
  const std::vector<RateBySize> rates = {{100, 10}, {200, 20}};
  CHECK(rate_at(rates, 150) == doctest::Approx(15));
  CHECK(rate_at(rates, 200) == doctest::Approx(20));
  CHECK(rate_at(rates, 1) == doctest::Approx(10));
  CHECK(rate_at(rates, 999) == doctest::Approx(20));
  CHECK(rate_at({}, 1) == 0);
}

TEST_CASE("where a rate falls below 80 % of its best, by number of queue pairs") {
  // One published ConnectX-6: READs fall, WRITEs do not.
  const Fall read = falls_from({{32, 83e6}, {512, 42e6}, {4096, 21e6}});
  CHECK(read.pairs == 512);
  CHECK(read.share == doctest::Approx(42.0 / 83));
  CHECK(read.best_pairs == 32);
  CHECK(falls_from({{32, 123e6}, {512, 122e6}, {4096, 111e6}}).pairs == 0);
  // Few pairs are slow before the best, which is no fall; and one that recovers has not fallen there.
  CHECK(falls_from({{1, 2e6}, {8, 10e6}, {32, 11e6}}).pairs == 0);
  CHECK(falls_from({{1, 10e6}, {8, 5e6}, {32, 9e6}, {64, 7e6}}).pairs == 64);
  CHECK(falls_from({{1, 10e6}, {8, 8e6}}).pairs == 0);
  CHECK(falls_from({}).pairs == 0);
  CHECK(falls_from({{1, 0}, {8, 0}}).pairs == 0);
}

TEST_CASE("sizes of results are read, scaled, or complained of") {
  const auto two = results("32:3,1024:1");
  REQUIRE(two.size() == 2);
  CHECK(two[0].share == doctest::Approx(0.75));
  CHECK(results("32,64").at(1).share == doctest::Approx(0.5));
  for (const char* text : {"", "x", "32:", "32:x", "32:0", "32:-1", "32x", "32:nan", "32:inf"}) {
    std::string complaint;
    CHECK(parse_results(text, complaint).empty());
    CHECK_FALSE(complaint.empty());
  }
}
