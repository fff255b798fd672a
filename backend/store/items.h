// The items of a store, as all of its parts share them: index, log, pages and counters; which items are alive; how one
// is removed.
//
//   Store (ops), Reclaimer, Sweeper, MemoryLimit, Walker ─▶ Items ─▶ Index, Log, Pages
//
// Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <vector>

#include "op/records.h"
#include "store/config.h"
#include "store/counters.h"
#include "store/index/index.h"
#include "store/memory/item.h"
#include "store/memory/log.h"
#include "store/memory/pages.h"
#include "store/memory/value.h"
#include "store/pin_table.h"
#include "store/work.h"

namespace egret::store {

struct Superblock;

struct Items {
  // `kept`: the state that a warm restart continues from; null: start empty.
  Items(const StoreConfig& config, std::byte* arena, const Layout& layout, const Superblock* kept);
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  Item& item(ItemRef ref) const { return log.item(ref); }
  Item& item(Slot slot) const { return log.item(slot.ref()); }
  bool is_expired(const Item& of) const { return of.exptime() != 0 && of.exptime() <= now; }
  bool is_flushed(const Item& of) const { return of.version() < flushed_before; }
  bool is_live(const Item& of) const { return !is_flushed(of) && !is_expired(of); }
  uint64_t cas_of(const Item& of) const { return of.given_cas().value_or(of.version() * cas_stride + cas_offset); }
  op::RecordHead record_of(const Item& of) const;

  void count_in(const Item& of);
  void count_out(const Item& of);
  void set_expires(Slot slot, bool expires);
  // Takes the item out of the index and frees its memory unless it is pinned.
  void remove(Slot slot, uint64_t hash);
  // The same for a record that is out of the index already.
  void drop(ItemRef ref);
  void free_record(ItemRef ref);
  // Null: it is not pinned.
  PinEntry* find_pin(ItemRef ref) { return item(ref).has(kPinned) ? pins.find(ref) : nullptr; }

  // Ends the current op or step of upkeep: records how much work it did.
  void end_step() {
    if (work.ns() > 1'000) {
      note_long_step();
    } else {
      ++counters[op::StatId::kStepsUnder1us];
    }
    work.reset();
  }
  void note_long_step();

  Pages pages;
  Index index;
  Log log;
  Counters counters;
  StepWork work;
  uint64_t long_work_ns = 0;  // of all steps that took more than 1 us (work.h)
  PinTable pins;

  const uint64_t cas_stride;
  const uint64_t cas_offset;
  uint32_t now = 0;             // seconds since the epoch, read by Store::begin_pass()
  uint64_t version;             // the version that the next change gets
  uint64_t flushed_before = 0;  // items with a smaller version are hidden
  uint64_t expiring = 0;        // number of items that have an exptime
};

}  // namespace egret::store
