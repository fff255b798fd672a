// A small fast random number generator, and a Zipf distribution over ranks.
// One of each per thread; a seed replays them.
#pragma once

#include <cstdint>

namespace egret::bench {

// Bijective scrambling of 64 bits (the finaliser of splitmix64).
inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(mix64(seed + 1)) {}

  uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  // 0..bound-1. The bias of multiply-and-shift is below bound / 2^32.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }
  // [0, 1)
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

// Ranks 0..count-1, rank r with a probability proportional to 1 / (r + 1)^exponent. Exact, with no table:
// rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions" (1996).
class ZipfSampler {
 public:
  // count >= 1, exponent > 0 (1 included).
  ZipfSampler(uint32_t count, double exponent);

  uint32_t sample(Rng& rng) const;

 private:
  double density(double x) const;           // x^-exponent
  double integral(double x) const;          // of density, from 1 to x
  double inverse_integral(double y) const;  // the x whose integral is y

  double count_;
  double exponent_;
  double low_;  // the range of areas that are drawn from
  double high_;
  double sure_offset_;  // a candidate this close above the drawn point is accepted at once
};

}  // namespace egret::bench
