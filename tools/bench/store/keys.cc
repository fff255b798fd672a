#include "bench_store/keys.h"

#include "bench/sampler.h"

namespace egret::bench_store {
namespace {

constexpr double kZipf = 0.99;

}  // namespace

KeyText key_text(uint64_t number) {
  KeyText key;
  const uint64_t mixed = bench::mix64(number + 1);
  for (uint32_t i = 0; i < kKeyLength; ++i) key[i] = "0123456789abcdef"[mixed >> (i * 4) & 15];
  return key;
}

std::vector<KeyText> draw_uniform(uint64_t numbers) {
  bench::Rng rng(3);
  std::vector<KeyText> keys(kDrawnKeys);
  for (KeyText& key : keys) key = key_text(rng.next() % numbers);
  return keys;
}

std::vector<KeyText> draw_zipf(uint64_t numbers) {
  constexpr uint64_t kPrime = 2654435761;
  bench::Rng rng(4);
  const bench::ZipfSampler sampler(static_cast<uint32_t>(numbers), kZipf);
  std::vector<KeyText> keys(kDrawnKeys);
  for (KeyText& key : keys) key = key_text(sampler.sample(rng) * kPrime % numbers);
  return keys;
}

}  // namespace egret::bench_store
