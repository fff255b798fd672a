// Removes expired and flushed items before somebody asks for them: a cursor over the index's buckets (sweep.cc).
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>

#include "store/items.h"
#include "store/upkeep/reclaimer.h"

namespace egret::store {

class Sweeper {
 public:
  static constexpr uint32_t kNever = UINT32_MAX;

  Sweeper(Items& items, Reclaimer& reclaimer) : items_(items), reclaimer_(reclaimer) {}

  // Sweeps some buckets. False: there is nothing to sweep at present.
  bool step();
  // Seconds until step() has something to do; kNever: not until something changes.
  uint32_t due_in_seconds() const;

  // The first item with an exptime was stored.
  void on_first_expiring() { turn_second_ = items_.now; }
  // A flush hid items: sweep them after kFlushGraceSeconds.
  void on_flush();
  // No room was found: sweep as soon as possible.
  void on_no_room();

 private:
  void sweep_bucket(uint32_t number);

  Items& items_;
  Reclaimer& reclaimer_;
  uint32_t bucket_ = 0;          // the next bucket to sweep; 0: no turn is in progress
  uint32_t turn_second_ = 0;     // when this turn began
  bool sweeps_flushed_ = false;  // this turn reads every item, because of a flush
  bool flush_unswept_ = false;
  uint32_t flush_due_second_ = 0;  // when to sweep what a flush hid; 0: nothing to sweep
};

}  // namespace egret::store
