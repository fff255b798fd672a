#include "bench/sampler.h"

#include <algorithm>
#include <cmath>

namespace egret::bench {
namespace {

// expm1(x)/x and log1p(x)/x, also where x is so small that 0/0 would come out (an exponent of or near 1).
constexpr double kTiny = 1e-8;
double expm1_ratio(double x) {
  return std::fabs(x) < kTiny ? 1 + x / 2 : std::expm1(x) / x;
}
double log1p_ratio(double x) {
  return std::fabs(x) < kTiny ? 1 - x / 2 : std::log1p(x) / x;
}

}  // namespace

ZipfSampler::ZipfSampler(uint32_t count, double exponent)
    : count_(count),
      exponent_(exponent),
      low_(integral(1.5) - 1),
      high_(integral(count_ + 0.5)),
      sure_offset_(2 - inverse_integral(integral(2.5) - density(2))) {}

double ZipfSampler::density(double x) const {
  return std::exp(-exponent_ * std::log(x));
}

double ZipfSampler::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_ratio((1 - exponent_) * log_x) * log_x;
}

double ZipfSampler::inverse_integral(double y) const {
  const double t = std::max(y * (1 - exponent_), -1.0);  // rounding may take it below, where log1p is undefined
  return std::exp(log1p_ratio(t) * y);
}

uint32_t ZipfSampler::sample(Rng& rng) const {
  while (true) {
    const double area = high_ + rng.unit() * (low_ - high_);
    const double x = inverse_integral(area);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, count_);
    if (k - x <= sure_offset_ || area >= integral(k + 0.5) - density(k)) return static_cast<uint32_t>(k) - 1;
  }
}

}  // namespace egret::bench
