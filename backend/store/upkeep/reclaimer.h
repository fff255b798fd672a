// Makes room: evicts by S3-FIFO and compacts, a few records at a time (reclaim.cc). Knows how much the ops have written
// since it last reclaimed (the debt), and which page is being drained.
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <span>

#include "store/index/ghosts.h"
#include "store/items.h"
#include "store/upkeep/evictions.h"

namespace egret::store {

class Reclaimer {
 public:
  // `evicts`: whether items that are alive may be evicted (StoreConfig::evict).
  Reclaimer(Items& items, Ghosts& ghosts, Evictions& evictions, bool evicts)
      : items_(items), ghosts_(ghosts), evictions_(evictions), evicts_(evicts) {}

  // Makes room for a record of so many units and for so many pages besides; false: there is none. May move or evict
  // anything that is not pinned: slots and views from before are invalid.
  bool ensure_room(uint32_t units, uint32_t pages);
  // An op has written so many units. pay_debt(), before the next op, reclaims as much if few pages are free.
  void owe(uint32_t units) { debt_ += units; }
  bool owes() const { return debt_ != 0; }
  void pay_debt();

  // Drains until needs_pages() is false, or about so many units have been looked at. Returns how many were.
  uint32_t reclaim(uint32_t units);
  bool needs_pages() const { return items_.pages.free_count() < free_target_; }
  // So many free pages only reclaiming may take, since it needs a head to copy to.
  uint32_t reserve() const { return reserve_; }
  // Sets how many pages items and index may have in all; computes the targets from it.
  void set_usable_pages(uint32_t pages);

  // Removes an item that is expired or flushed, and counts it as reclaimed.
  void reclaim_dead(Slot slot, uint64_t hash);

 private:
  bool begin_drain(bool hard);
  PageNumber oldest_of(std::span<const Queue> order, bool with_pins);
  bool force_drain(uint32_t wanted_free);
  uint32_t drain_group(bool hard, uint32_t wanted_free);
  bool settle(ItemRef ref, uint64_t hash, bool hard);
  bool keep(Slot slot, Queue queue, uint32_t frequency);
  void gather_chunks(Item& item);
  void evict(Slot slot, uint64_t hash, Queue queue);

  Items& items_;
  Ghosts& ghosts_;
  Evictions& evictions_;
  const bool evicts_;
  uint32_t reserve_ = 0;
  uint32_t free_target_ = 0;    // how many free pages reclaiming tries to keep
  uint32_t debt_ = 0;           // units written since pay_debt()
  uint32_t drain_at_ = 0;       // how far the current page is drained, in units
  bool compacts_ = false;       // every live record of that page is kept
  bool is_pinned_ = false;      // that page has pins, so it stays: draining it frees large values only
  bool gathered_last_ = false;  // the page before was drained to move chunks together
};

}  // namespace egret::store
