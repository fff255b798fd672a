#include "bench_plot/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace egret::bench_plot {
namespace {

constexpr std::array<double, 3> kRound{1, 2, 5};
constexpr double kMostTicks = 7;
constexpr double kHair = 1e-9;  // relative: what rounding may add to a value that is a tick

}  // namespace

Scale Scale::linear(double greatest, double from_px, double to_px) {
  double step = std::pow(10, std::floor(std::log10(greatest / kMostTicks)));
  for (const double each : {1.0, 2.0, 5.0, 10.0}) {
    if (greatest / (step * each) > kMostTicks) continue;
    step *= each;
    break;
  }
  std::vector<double> ticks{0};
  while (ticks.back() < greatest * (1 - kHair)) ticks.push_back(step * static_cast<double>(ticks.size()));
  return {/*is_log=*/false, std::move(ticks), from_px, to_px};
}

Scale Scale::logarithmic(double least, double greatest, double from_px, double to_px) {
  std::vector<double> ticks;
  const int last_power = static_cast<int>(std::ceil(std::log10(greatest))) + 1;
  for (int power = static_cast<int>(std::floor(std::log10(least))); power <= last_power; ++power) {
    for (const double each : kRound) ticks.push_back(each * std::pow(10, power));
  }
  const auto is_above = [](double value, double tick) { return tick > value * (1 + kHair); };
  const auto begin = std::upper_bound(ticks.begin(), ticks.end(), least, is_above) - 1;
  const auto end = std::lower_bound(begin + 1, ticks.end(), greatest * (1 - kHair)) + 1;
  return {/*is_log=*/true, {begin, end}, from_px, to_px};
}

double Scale::at(double value) const {
  const double share =
      is_log_ ? std::log(value / low()) / std::log(high() / low()) : (value - low()) / (high() - low());
  return from_px_ + share * (to_px_ - from_px_);
}

}  // namespace egret::bench_plot
