#include "changes/tombstones.h"

#include <algorithm>
#include <bit>

namespace egret::backend {

namespace {
constexpr uint64_t kShare = 128;
constexpr uint64_t kLeast = 64u << 10;  // bytes
constexpr uint64_t kMost = 2u << 20;
}  // namespace

// Three bits of one line.
struct Tombstones::Place {
  uint64_t first_word;
  uint64_t bits[3];  // 0 to 511
};

Tombstones::Tombstones(uint64_t memory) : lines_(std::clamp(std::bit_floor(memory / kShare), kLeast, kMost) / kLine) {}

bool Tombstones::open(uint64_t until_ns) {
  if (words_ == nullptr) {
    words_.reset(static_cast<uint64_t*>(std::calloc(lines_ * kWords, sizeof(uint64_t))));
    is_full_ = false;
  }
  until_ns_ = until_ns;
  return words_ != nullptr;
}

// The hash's high bits chose the partition, so they are mixed with the low ones first.
Tombstones::Place Tombstones::place_of(uint64_t hash) const {
  uint64_t mixed = hash * 0x9e37'79b9'7f4a'7c15;
  mixed ^= mixed >> 32;
  mixed *= 0xd6e8'feb8'6659'fd93;
  mixed ^= mixed >> 32;
  return {(mixed & (lines_ - 1)) * kWords, {mixed >> 32 & 511, mixed >> 41 & 511, mixed >> 50 & 511}};
}

void Tombstones::add(uint64_t hash) {
  const Place place = place_of(hash);
  for (const uint64_t bit : place.bits) words_[place.first_word + bit / 64] |= uint64_t{1} << bit % 64;
}

bool Tombstones::allows_fill(uint64_t hash, uint64_t now_ns) const {
  if (!takes_fills(now_ns) || is_full_) return false;
  const Place place = place_of(hash);
  return !std::ranges::all_of(place.bits,
                              [&](uint64_t bit) { return (words_[place.first_word + bit / 64] >> bit % 64 & 1) != 0; });
}

uint64_t Tombstones::due_ns() const {
  return is_recording() ? until_ns_ + kLingerNs : UINT64_MAX;
}

void Tombstones::forget_if_over(uint64_t now_ns) {
  if (now_ns >= due_ns()) words_.reset();
}

}  // namespace egret::backend
