#include "changes/tombstones.h"

#include <algorithm>
#include <bit>
#include <utility>

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

Tombstones::Words Tombstones::allocate() const {
  return Words(static_cast<uint64_t*>(std::calloc(lines_ * kWords, sizeof(uint64_t))));
}

bool Tombstones::open(uint64_t until_ns) {
  if (words_ == nullptr) {
    words_ = allocate();
    is_full_ = false;
  }
  until_ns_ = until_ns;
  return words_ != nullptr;
}

// Without memory for it all that is recorded goes on to count. A fill that was under way at an earlier change is judged by
// the owners before the last one: it has been under way too long to be worth more. That every key counts (is_full_, also
// for a flush that is to come) stays.
void Tombstones::turn(Owned owned, uint64_t now_ns) {
  if (!is_recording()) return;
  Words fresh = allocate();
  if (fresh == nullptr) return;
  if (before_ != nullptr) {
    for (uint64_t i = 0; i < lines_ * kWords; ++i) words_[i] |= before_[i];
  }
  before_ = std::exchange(words_, std::move(fresh));
  owned_before_ = std::move(owned);
  before_until_ns_ = now_ns + kLingerNs;
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

bool Tombstones::has(const uint64_t* words, const Place& place) {
  return std::ranges::all_of(place.bits,
                             [&](uint64_t bit) { return (words[place.first_word + bit / 64] >> bit % 64 & 1) != 0; });
}

bool Tombstones::allows_fill(std::string_view key, uint64_t hash, uint64_t now_ns) const {
  if (!takes_fills(now_ns) || is_full_) return false;
  const Place place = place_of(hash);
  if (has(words_.get(), place)) return false;
  return before_ == nullptr || !has(before_.get(), place) || !owned_before_(key);
}

uint64_t Tombstones::due_ns() const {
  if (!is_recording()) return UINT64_MAX;
  const uint64_t over_ns = until_ns_ + kLingerNs;
  return before_ != nullptr ? std::min(over_ns, before_until_ns_) : over_ns;
}

void Tombstones::forget_if_over(uint64_t now_ns) {
  if (is_recording() && now_ns >= until_ns_ + kLingerNs) words_.reset();
  if (words_ == nullptr || now_ns >= before_until_ns_) {
    before_.reset();
    owned_before_ = nullptr;
  }
}

}  // namespace egret::backend
