// Scales: the positions of values; ticks are round numbers, few, and enclose all values.
#include "bench_plot/scale.h"

#include <cmath>

#include <doctest/doctest.h>

using egret::bench_plot::Scale;

TEST_CASE("a linear scale begins at 0 and ends at the tick above the greatest value") {
  const Scale scale = Scale::linear(74'300, 100, 900);
  CHECK(scale.low() == 0);
  CHECK(scale.high() == 80'000);
  CHECK(scale.ticks().size() == 5);
  CHECK(scale.at(0) == 100);
  CHECK(scale.at(40'000) == 500);
  CHECK(scale.at(80'000) == 900);
}

TEST_CASE("a greatest value that is a tick is the last one") {
  CHECK(Scale::linear(4, 0, 1).high() == 4);
  CHECK(Scale::linear(1, 0, 1).high() == doctest::Approx(1));
  CHECK(Scale::linear(0.6, 0, 1).high() == doctest::Approx(0.6));
}

TEST_CASE("linear ticks are few at any size") {
  for (int step = 0; step < 130; ++step) {
    const double greatest = 1e-6 * std::pow(1.37, step);
    const Scale scale = Scale::linear(greatest, 0, 1);
    CAPTURE(greatest);
    CHECK(scale.high() >= greatest * 0.999);
    CHECK(scale.high() <= greatest * 2.01);
    CHECK(scale.ticks().size() >= 3);
    CHECK(scale.ticks().size() <= 8);
  }
}

TEST_CASE("a logarithmic scale runs from tick to tick, and equal factors are equal ways") {
  const Scale scale = Scale::logarithmic(17, 4'100, 300, 0);
  CHECK(scale.low() == doctest::Approx(10));
  CHECK(scale.high() == doctest::Approx(5'000));
  CHECK(scale.at(10) == doctest::Approx(300));
  CHECK(scale.at(5'000) == doctest::Approx(0));
  CHECK(scale.at(100) - scale.at(10) == doctest::Approx(scale.at(1'000) - scale.at(100)));
}

TEST_CASE("logarithmic ticks enclose any range tightly, one value and values that are ticks too") {
  for (int step = 0; step < 44; ++step) {
    const double least = 1e-4 * std::pow(1.7, step);
    for (const double factor : {1.0, 1.01, 3.0, 1e4}) {
      const Scale scale = Scale::logarithmic(least, least * factor, 0, 1);
      CAPTURE(least);
      CAPTURE(factor);
      CHECK(scale.low() <= least * 1.001);
      CHECK(scale.low() >= least / 2.51);
      CHECK(scale.high() >= least * factor * 0.999);
      CHECK(scale.high() <= least * factor * 2.51);
      CHECK(scale.ticks().size() >= 2);
    }
  }
  const Scale exact = Scale::logarithmic(20, 500, 0, 1);
  CHECK(exact.low() == doctest::Approx(20));
  CHECK(exact.high() == doctest::Approx(500));
}
