// A memory limit that changes while the store serves (limit.cc).
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>

#include "op/op.h"
#include "store/items.h"
#include "store/memory/arena.h"
#include "store/memory/layout.h"
#include "store/upkeep/reclaimer.h"

namespace egret::store {

class MemoryLimit {
 public:
  MemoryLimit(const StoreConfig& config, const Layout& layout, Arena& arena, Items& items, Reclaimer& reclaimer);

  uint64_t bytes() const { return bytes_; }
  uint64_t least() const;
  uint64_t most() const { return uint64_t{layout_.most} * kPageSize; }
  // Takes effect in step()s. kOutOfMemory: it is not within least() .. most().
  op::ResultCode set(uint64_t bytes);
  // One step towards the limit. False: there is nothing to do, or nothing can be done at present.
  bool step();

  // Fixed pages that have address space but no memory yet.
  uint32_t uncounted_pages() const { return layout_.fixed - layout_.fixed_of(pages_counted_); }
  // Pages in use beyond the limit, because it was lowered.
  uint32_t pages_over() const;

 private:
  void choose_targets();
  void take_back(uint32_t pages);

  const uint32_t item_size_max_;
  const Layout& layout_;
  Arena& arena_;
  Items& items_;
  Reclaimer& reclaimer_;
  uint64_t bytes_;
  PageNumber pages_counted_;  // pages of the highest limit so far
  uint32_t to_withhold_ = 0;  // how many of them the present limit does not allow
};

}  // namespace egret::store
