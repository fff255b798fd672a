// Blocks of 2^n bytes out of one region, split and joined by halves: paper 000 takes mem5 of SQLite for its extents. What
// it knows of the blocks lies outside the region, in memory that is made once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace egret::bench_paradigms {

class BuddyAllocator {
 public:
  static constexpr uint32_t kSmallest = 32;
  static constexpr uint32_t kNone = ~uint32_t{0};

  explicit BuddyAllocator(uint32_t bytes);

  // Of a block that holds so many bytes; kNone: there is no such block.
  uint32_t allocate(uint32_t bytes);
  void free(uint32_t offset);

  // What a block for so many bytes takes.
  static uint32_t block_bytes(uint32_t bytes);
  uint32_t free_bytes() const { return free_units_ * kSmallest; }

 private:
  static constexpr uint32_t kOrders = 27;  // a block of order n has 2^n units of kSmallest bytes
  struct Unit {
    uint32_t next = kNone;  // of the free blocks of its order
    uint32_t previous = kNone;
    uint8_t order = 0;  // of the block that begins here
    bool is_free = false;
  };
  void add(uint32_t unit, uint32_t order);
  void take_out(uint32_t unit);

  std::vector<Unit> units_;
  std::array<uint32_t, kOrders> heads_{};
  uint32_t free_units_ = 0;
};

}  // namespace egret::bench_paradigms
