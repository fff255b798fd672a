// Making room: eviction by S3-FIFO and compaction, a few records at a time.
//
//   an op writes b bytes: they become debt ─▶ pay_debt(), before the next op: drains while few pages are free
//   an op needs a page and none is free    ─▶ ensure_room(): drains one page now, without second chances
//
//   order of draining: sparse pages (compaction) ─▶ the oldest page of the small queue while that queue has more than
//   its share (kSmallShare), else of the main queue. Pages without live records are free already (log.cc). A page
//   with pinned records stays; of the others in it only those of large values, whose bytes lie elsewhere, are handled.
//
// Chunks of large values lie outside the log. Chunks that outlive their neighbours leave pages mostly empty. While too
// many chunks are free, every second page is drained only to move its items' chunks together (gather_chunks).
//
// What happens to a record of the page that is drained:
//   dead, expired or flushed   dropped
//   live, of a sparse page     moves to the head of its queue
//   live, of the small queue   read twice or more, or stored last: moves to main. Else evicted; its key becomes a ghost
//   live, of the main queue    read since it came there: moves to main's head, with one read less. Else evicted
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "store/upkeep/reclaimer.h"

namespace egret::store {

using op::StatId;

namespace {
constexpr size_t kGroup = 16;             // records whose buckets are prefetched together
constexpr uint32_t kSmallShare = 20;      // the small queue's share of the weight: 1/20
constexpr uint32_t kLeastPaid = 64;       // pay_debt() looks at so many units at least ...
constexpr uint32_t kMostPaid = 6 * 1024;  // ... and so many at most, so that a step stays short
constexpr int kMostTries = 4;          // log.oldest() passes over a bounded number of pages with pins; the next goes on
constexpr uint32_t kForcedDrains = 2;  // pages to drain for an op's record; as many for each page of its value

// How many reads move an item from small to main, and how many it loses for another round in main. Larger items need
// more reads than small ones: with lognormal sizes that saves 3 % of the misses. With equal sizes it is plain S3-FIFO.
struct Price {
  uint32_t to_main;
  uint32_t to_stay;
};
Price price_of(uint64_t bytes, uint64_t mean) {
  if (bytes > 3 * mean) return {3, 3};
  if (2 * bytes > 3 * mean) return {3, 2};
  if (2 * bytes < mean) return {1, 1};
  return {2, 1};
}

struct Candidate {
  ItemRef ref;
  uint64_t hash = 0;
  uint32_t end = 0;  // where the record ends, in units from the page's start
};
}  // namespace

void Reclaimer::set_usable_pages(uint32_t pages) {
  reserve_ = pages >= 64 ? 2 : 1;
  free_target_ = reserve_ + std::clamp(pages / 256, 2u, 16u);
}

// --- When to reclaim

bool Reclaimer::ensure_room(uint32_t units, uint32_t pages) {
  const auto needed = [&] {
    if (units == 0) return pages;
    const bool fits = items_.log.has_room(Queue::kSmall, units) && items_.log.has_room(Queue::kMain, units);
    return pages + (fits ? 0 : 1) + (items_.index.may_need_page() ? 1 : 0);
  };
  items_.work.brings(pages);
  uint32_t wanted = needed();
  for (uint32_t drains = 0; wanted > 0 && items_.pages.free_count() < reserve_ + wanted; ++drains) {
    if (drains == kForcedDrains + 2 * pages || !force_drain(reserve_ + wanted)) return false;
    wanted = needed();  // draining may have opened a new head with room
  }
  return true;
}

void Reclaimer::pay_debt() {
  const uint32_t debt = std::exchange(debt_, 0);
  const uint32_t free = items_.pages.free_count();
  if (free >= free_target_) return;
  // Reclaim faster the fewer pages are free.
  const uint32_t factor = 2 + 4 * (free_target_ - free) / free_target_;
  reclaim(std::clamp(debt * factor, kLeastPaid, kMostPaid));
}

uint32_t Reclaimer::reclaim(uint32_t units) {
  uint32_t done = 0;
  while (done < units && items_.pages.free_count() < free_target_) {
    if (items_.log.draining() == kNoPage && !begin_drain(false)) break;
    const uint32_t passed = drain_group(false, free_target_);
    if (passed == 0) break;
    done += passed;
  }
  return done;
}

// Drains a page to its end, or until so many pages are free. Without eviction this may free nothing.
bool Reclaimer::force_drain(uint32_t wanted_free) {
  const bool hard = evicts_;
  if (items_.log.draining() == kNoPage && !begin_drain(hard)) return false;
  while (items_.log.draining() != kNoPage && items_.pages.free_count() < wanted_free) {
    if (drain_group(hard, wanted_free) == 0) return false;
  }
  return true;
}

// --- Which page to drain

// `with_pins`: pages of which only some may be evicted, too. Such a page is read whole and may free little, so there must be
// time for it.
PageNumber Reclaimer::oldest_of(std::span<const Queue> order, bool with_pins) {
  for (const Queue queue : order) {
    PageNumber page = items_.log.oldest(queue, with_pins);
    // The queue may consist of its head only, when most of the memory is in large values.
    if (page == kNoPage && items_.log.seal(queue)) page = items_.log.oldest(queue, with_pins);
    if (page != kNoPage) return page;
  }
  return kNoPage;
}

bool Reclaimer::begin_drain(bool hard) {
  PageNumber page = hard ? kNoPage : items_.log.sparsest();
  const bool may_gather = items_.work.has_time() && (!hard || items_.work.has_pages());
  gathered_last_ = page == kNoPage && !gathered_last_ && may_gather && items_.pages.wastes_chunks();
  if (gathered_last_) {
    page = items_.log.oldest(Queue::kMain, false);
    if (page == kNoPage) page = items_.log.oldest(Queue::kSmall, false);
  }
  compacts_ = page != kNoPage;
  if (page == kNoPage && evicts_) {
    const uint64_t small = items_.log.queue(Queue::kSmall).weight;
    const uint64_t main = items_.log.queue(Queue::kMain).weight;
    const bool small_first = small * kSmallShare >= small + main;
    const std::array<Queue, 2> order{small_first ? Queue::kSmall : Queue::kMain,
                                     small_first ? Queue::kMain : Queue::kSmall};
    const bool with_pins = items_.work.has_time() && (!hard || items_.work.has_pages());
    page = oldest_of(order, with_pins);
    for (int tries = 0; hard && page == kNoPage && tries < kMostTries; ++tries)
      page = oldest_of(order, items_.work.has_time());
  }
  if (page == kNoPage) return false;
  is_pinned_ = items_.pages.info(page).pins > 0;
  items_.log.begin_drain(page);
  drain_at_ = 0;
  ghosts_.fit(items_.index.state().items);
  return true;
}

// --- What to do with each record

// Drains the next few records of the page, or fewer if so many pages are free before (one large item may free many). At
// its end the page is freed. Returns the units drained; 0: there is no room to move a record to.
uint32_t Reclaimer::drain_group(bool hard, uint32_t wanted_free) {
  const PageNumber page = items_.log.draining();
  const uint32_t used = items_.pages.info(page).used;
  const uint32_t start = drain_at_;
  std::array<Candidate, kGroup> group;
  size_t count = 0;
  uint32_t at = start;
  uint32_t passed = 0;
  for (; at < used && count < kGroup && passed < 4 * kGroup; ++passed) {
    const ItemRef ref{uint64_t{page} * kUnitsPerPage + at};
    const Item& record = items_.item(ref);
    at += record.units();
    if (record.is_dead() || (is_pinned_ && (!record.has(kLarge) || record.has(kPinned)))) continue;
    group[count++] = {ref, items_.index.hash_of(record), at};
    items_.index.prefetch(group[count - 1].hash);
    if (!compacts_) ghosts_.prefetch(group[count - 1].hash);
  }
  items_.work.records(passed);
  for (size_t i = 0; i < count; ++i) {
    if (!settle(group[i].ref, group[i].hash, hard)) return 0;
    drain_at_ = group[i].end;
    if (i + 1 < count && items_.pages.free_count() >= wanted_free) return drain_at_ - start;
  }
  drain_at_ = at;
  if (at >= used) {
    EGRET_DCHECK(is_pinned_ || items_.pages.info(page).live == 0);
    items_.log.end_drain();
  }
  return at - start + 1;
}

bool Reclaimer::settle(ItemRef ref, uint64_t hash, bool hard) {
  const Slot slot = items_.index.find(ref, hash);
  EGRET_DCHECK(bool{slot});
  const Item& it = items_.item(ref);
  if (items_.is_flushed(it) || items_.is_expired(it)) return reclaim_dead(slot, hash), true;
  const Queue queue = items_.log.queue_of(ref);
  if (compacts_) {
    if (keep(slot, queue, slot.frequency())) return true;
    if (evicts_) return evict(slot, hash, queue), true;
    items_.log.stop_drain();
    return false;
  }
  const uint32_t frequency = slot.frequency();
  const Price price = price_of(item_bytes(it), items_.counters[StatId::kBytes] / items_.counters[StatId::kCurrItems]);
  // A value larger than the small queue's share may be its only item: the first to go, before anybody could read it.
  const bool is_newest = queue == Queue::kSmall && it.version() + 1 == items_.version;
  const bool stays = !hard && (is_newest || frequency >= (queue == Queue::kSmall ? price.to_main : price.to_stay));
  const uint32_t left = queue == Queue::kSmall ? 0 : frequency - price.to_stay;
  if (!stays || !keep(slot, Queue::kMain, left)) evict(slot, hash, queue);
  return true;
}

// Moves the record to a head. False: there is no page for that.
bool Reclaimer::keep(Slot slot, Queue queue, uint32_t frequency) {
  const ItemRef from = slot.ref();
  const uint32_t units = items_.item(from).units();
  const ItemRef to = items_.log.append(queue, units);
  if (!to) return false;
  std::memcpy(static_cast<void*>(&items_.item(to)), static_cast<const void*>(&items_.item(from)), units * kUnit);
  if (items_.item(to).has(kLarge)) {
    const uint64_t outside = large_head(items_.item(to)).chunks * kChunkSize;
    items_.log.count_large(from, -static_cast<int64_t>(outside));
    items_.log.count_large(to, static_cast<int64_t>(outside));
    if (items_.pages.wastes_chunks()) gather_chunks(items_.item(to));
  }
  slot.set_ref(to);
  slot.set_frequency(frequency);
  items_.log.kill(from);
  items_.work.bytes(units * kUnit);
  items_.counters[StatId::kCopiedBytes] += units * kUnit;
  return true;
}

// Moves the item's chunks to fuller pages, so that emptier pages become free; as many as the step has time for.
void Reclaimer::gather_chunks(Item& item) {
  const uint32_t extents = large_head(item).extents;
  for (uint32_t i = 0; i < extents && items_.work.has_time(); ++i) {
    const Extent extent = extent_of(item, i);
    const uint64_t from = first_chunk(extent);
    if (items_.pages.info(static_cast<PageNumber>(from / kChunksPerPage)).use != PageUse::kChunks) continue;
    const uint64_t to = items_.pages.take_denser_chunk(from);
    if (to == 0) continue;
    std::memcpy(items_.pages.chunk_data(to), items_.pages.chunk_data(from), kChunkSize);
    set_extent(item, i, to << kEndBits | end_of(extent));
    items_.pages.give_chunk(from);
    items_.work.bytes(kChunkSize);
    items_.counters[StatId::kCopiedBytes] += kChunkSize;
  }
}

void Reclaimer::evict(Slot slot, uint64_t hash, Queue queue) {
  const Item& it = items_.item(slot);
  Counters::Class& its = items_.counters.classes[op::size_class_of(item_bytes(it))];
  ++items_.counters[StatId::kEvictions];
  ++its.evicted;
  its.evicted_time = items_.now - std::min(items_.now, it.last_access());
  if (it.exptime() != 0) ++its.evicted_nonzero;
  if (!it.has(kFetched)) {
    ++items_.counters[StatId::kEvictedUnfetched];
    ++its.evicted_unfetched;
  } else if (slot.frequency() > 1) {
    ++its.evicted_active;
  }
  if (evictions_.is_watched()) [[unlikely]]
    evictions_.add(items_.record_of(it), it.key());
  if (queue == Queue::kSmall) ghosts_.add(hash);
  items_.remove(slot, hash);
}

void Reclaimer::reclaim_dead(Slot slot, uint64_t hash) {
  const Item& it = items_.item(slot);
  Counters::Class& its = items_.counters.classes[op::size_class_of(item_bytes(it))];
  ++items_.counters[StatId::kReclaimed];
  ++its.reclaimed;
  if (!items_.is_flushed(it)) {
    ++items_.counters[StatId::kExpired];
    if (!it.has(kFetched)) {
      ++items_.counters[StatId::kExpiredUnfetched];
      ++its.expired_unfetched;
    }
  }
  items_.remove(slot, hash);
}

}  // namespace egret::store
