// Recently evicted keys (S3-FIFO's ghost queue): 16-bit fingerprints in 64-byte lines, each line a ring of the latest
// 31 keys that hash to it. A query or an insert touches one line. One query in 2,000 is a false positive, which puts a
// new item into the main queue, and nothing worse. Lives in the arena. Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <cstring>

#include "store/memory/pages.h"

namespace egret::store {

class Ghosts {
 public:
  static constexpr size_t kLine = 64;
  Ghosts(std::byte* at, uint32_t lines) : lines_(reinterpret_cast<Line*>(at)), count_(lines), used_(lines) {}

  // Sizes the memory to between half and all of the number of items. More would let keys that were evicted long ago
  // fill the main queue (measured with values of 200 B: 10 % more misses). Changing the size forgets all ghosts.
  void fit(uint64_t items) {
    while (used_ > 1 && used_ * kPrints > items) used_ /= 2;
    while (used_ * 2 <= count_ && used_ * 2 * kPrints <= items) used_ *= 2;
  }

  void prefetch(uint64_t hash) const { prefetch_line(&line(mixed(hash))); }
  void add(uint64_t hash) {
    Line& at = line(mixed(hash));
    at.prints[at.next] = print(mixed(hash));
    at.next = static_cast<uint16_t>((at.next + 1) % kPrints);
  }
  // Whether the key is there. Removes it.
  bool take(uint64_t hash) {
    Line& at = line(mixed(hash));
    const uint16_t wanted = print(mixed(hash));
    for (uint16_t& entry : at.prints) {
      if (entry == wanted) return entry = 0, true;
    }
    return false;
  }

 private:
  static constexpr size_t kPrints = 31;
  struct alignas(kLine) Line {
    uint16_t prints[kPrints];  // 0: empty
    uint16_t next;
  };
  static_assert(sizeof(Line) == kLine);

  // Mixed, because the index uses the hash's own bits.
  static uint64_t mixed(uint64_t hash) { return hash * 0x9e3779b97f4a7c15u; }
  static uint16_t print(uint64_t mixed) {
    const auto bits = static_cast<uint16_t>(mixed >> 16);
    return bits != 0 ? bits : 1;
  }
  Line& line(uint64_t mixed) const { return lines_[(mixed >> 32) * used_ >> 32]; }

  Line* lines_;
  uint64_t count_;
  uint64_t used_;
};

}  // namespace egret::store
