// Numbers that one thread writes and any thread reads.
#include <algorithm>
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "base/counter.h"

using egret::base::Counter;
using egret::base::Gauge;

TEST_CASE("a reset counts anew, and the whole count stays") {
  Counter counter;
  counter.add(5);
  counter.mark();
  counter.add();
  CHECK(counter.get() == 6);
  CHECK(counter.since_mark() == 1);
  counter.mark();
  CHECK(counter.since_mark() == 0);
}

TEST_CASE("a copy is what had been counted by then") {
  Counter counter;
  counter.add(5);
  counter.mark();
  counter.add(2);
  const Counter copy = counter;
  counter.add(9);
  CHECK(copy.get() == 7);
  CHECK(copy.since_mark() == 2);
}

TEST_CASE("counters of which some were reset add up, in all and since") {
  Counter one, two, sum;
  one.add(10);
  one.mark();
  one.add(1);
  two.add(100);
  sum.add(one);
  sum.add(two);
  CHECK(sum.get() == 111);
  CHECK(sum.since_mark() == 101);
}

TEST_CASE("a gauge is what it was set to last") {
  Gauge gauge;
  CHECK(gauge.get() == 0);
  gauge.set(7);
  gauge.set(3);
  CHECK(Gauge(gauge).get() == 3);
}

TEST_CASE("who reads while another counts and a third resets never sees less than nothing") {
  constexpr uint64_t kCounts = 1'000'000;
  Counter counter;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kCounts; ++i) counter.add();
    stop = true;
  });
  std::thread resetter([&] {
    while (!stop) counter.mark();
  });
  uint64_t most = 0;
  while (!stop) {
    Counter sum;
    sum.add(counter);
    most = std::max({most, counter.since_mark(), sum.since_mark()});
  }
  writer.join();
  resetter.join();
  CHECK(most <= kCounts);
  CHECK(counter.get() == kCounts);
}
