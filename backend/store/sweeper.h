// Removes items that are expired or flushed before anybody asks for them: a cursor over the index's buckets (sweep.cc).
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>

#include "store/items.h"
#include "store/reclaimer.h"

namespace egret::store {

class Sweeper {
 public:
  static constexpr uint32_t kNever = UINT32_MAX;

  Sweeper(Items& items, Reclaimer& reclaimer) : items_(items), reclaimer_(reclaimer) {}

  // Sweeps some buckets. False: there is nothing to sweep at present.
  bool step();
  // Seconds until step() has something to do; kNever: it has not, unless something changes.
  uint32_t due_in_seconds() const;

  // The first item that can expire has been stored.
  void on_first_expiring() { turn_second_ = items_.now; }
  // A flush has hidden items: they are swept after a while.
  void on_flush();
  // No room was found: expired and flushed items are swept as soon as possible.
  void on_no_room();

 private:
  void sweep_bucket(uint32_t number);

  Items& items_;
  Reclaimer& reclaimer_;
  uint32_t bucket_ = 0;          // the next one to sweep; 0: no turn is under way
  uint32_t turn_second_ = 0;     // when this turn began
  bool sweeps_flushed_ = false;  // this turn looks at every item, since there has been a flush
  bool flush_unswept_ = false;
  uint32_t flush_due_second_ = 0;  // what a flush has hidden is swept from then on
};

}  // namespace egret::store
