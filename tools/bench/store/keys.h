// The keys of all modes: numbers, and the texts that belong to them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace egret::bench_store {

// The text of key `number`: 16 hexadecimal digits, different for every number.
inline constexpr uint32_t kKeyLength = 16;
using KeyText = std::array<char, kKeyLength>;
KeyText key_text(uint64_t number);
inline std::string_view view(const KeyText& key) {
  return {key.data(), key.size()};
}

// So many key texts, in the order of their use: when they are begun again, no cache has their items any more.
inline constexpr uint64_t kDrawnKeys = 1u << 22;
// All of 0..numbers-1 alike.
std::vector<KeyText> draw_uniform(uint64_t numbers);
// By Zipf's law with exponent 0.99; the popular ones are strewn over the numbers, and so over the order of insertion.
std::vector<KeyText> draw_zipf(uint64_t numbers);

}  // namespace egret::bench_store
