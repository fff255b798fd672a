// Pseudo-random numbers from a seed: the same seed, the same numbers, so that what uses them replays. For spreading things
// in time; never for secrets (random.h). SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
#pragma once

#include <cstdint>

namespace egret::base {

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t mixed = state_ += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
  }

  // A number from `least` to `most`, both included, in steps of about a thousandth of what lies between.
  uint64_t between(uint64_t least, uint64_t most) {
    constexpr uint64_t kSteps = 1024;
    return least + (most - least) / kSteps * (next() % (kSteps + 1));
  }

 private:
  uint64_t state_;
};

}  // namespace egret::base
