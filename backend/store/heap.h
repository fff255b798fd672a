// Blocks of any size from one range of the arena.
//
//   begin                      top                      end
//   | block | block | free | block |  wilderness, untouched  |  (the index)
//
// Free blocks are kept in lists by size class (64 linear classes, then 32 per power of two), a bitmap says which lists
// have any: allocate() and release() take a constant number of steps. Neighbouring free blocks are always merged, and a
// free block before `top` becomes wilderness. Sizes are rounded up to a class's smallest, so a freed block fits the
// next of its kind exactly; at most 1/32 is lost to that. The heap knows of an item only what a block's header says
// (units, kFree, kPreviousFree). Thread: its owner's.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "store/item.h"

namespace egret::store {

class Heap {
 public:
  static constexpr uint32_t kMinUnits = 4;
  static constexpr uint32_t kGranuleUnits = 8192;  // 64 KiB: the step of lower_end(), and of the crossing map
  static constexpr uint32_t kClasses = 64 + 26 * 32;

  // All in units. `crossing` has an entry for every granule of the arena, all zero: it says where the first block that
  // starts in the granule does so (plus 1; 0: none does).
  Heap(std::byte* arena, uint16_t* crossing, uint32_t begin, uint32_t end);

  // The size that a block for `units` is given. `units` must be below 2^31.
  static uint32_t rounded(uint64_t units);

  // `units` must be rounded. No block: there is no room in one piece. The block's header has its units and bits only.
  ItemRef allocate(uint32_t units);
  // Returns where the free space around the block starts now: a free block, or top().
  uint32_t release(ItemRef ref);
  // Frees what the block has beyond `units`, if that is enough for a block.
  void shrink(ItemRef ref, uint32_t units);
  // Takes the last granule away from the heap. False: blocks stand there (last_granule_start() says where it begins).
  bool lower_end();

  Item& item(ItemRef ref) const { return *reinterpret_cast<Item*>(arena_ + uint64_t{ref.unit} * kUnit); }
  bool has_wilderness(uint32_t units) const { return end_ - top_ >= units; }
  uint32_t begin() const { return begin_; }
  uint32_t top() const { return top_; }
  uint32_t end() const { return end_; }
  uint32_t last_granule_start() const { return end_ - kGranuleUnits; }
  uint64_t used_units() const { return used_; }
  // The block in which `unit` (begin <= unit < top) lies.
  ItemRef block_covering(uint32_t unit) const;

  // The CLOCK hand always stands at a block's start or at top(): it moves along when blocks are merged, and beyond a
  // block that is given out where it stands, so that what is new has a whole turn ahead of it.
  uint32_t hand() const { return hand_; }
  void set_hand(uint32_t unit) { hand_ = unit; }

  bool check(std::string* why) const;

 private:
  struct FreeBlock {
    uint32_t units;
    uint8_t bits;
    uint8_t unused[3];
    uint32_t next;
    uint32_t previous;
  };

  static uint32_t class_of(uint32_t units);
  FreeBlock& free_block(uint32_t unit) const { return *reinterpret_cast<FreeBlock*>(arena_ + uint64_t{unit} * kUnit); }
  uint32_t& size_before(uint32_t unit) const {
    return *reinterpret_cast<uint32_t*>(arena_ + uint64_t{unit} * kUnit - 4);
  }
  uint32_t first_class_with_blocks(uint32_t from) const;
  void insert_free(uint32_t unit, uint32_t units);
  void remove_free(uint32_t unit);
  void note_start(uint32_t unit);
  void forget_start(uint32_t unit, uint32_t next);
  bool check_lists(uint64_t free_blocks, std::string* why) const;
  bool check_crossing(std::string* why) const;

  std::byte* arena_;
  uint16_t* crossing_;
  uint32_t begin_;
  uint32_t top_;
  uint32_t end_;
  uint32_t hand_;
  uint64_t used_ = 0;
  std::array<uint32_t, kClasses> heads_{};
  std::array<uint64_t, (kClasses + 63) / 64> has_blocks_{};
  uint32_t has_words_ = 0;  // which words of has_blocks_ are not zero
};

}  // namespace egret::store
