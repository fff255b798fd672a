// Making room: eviction by S3-FIFO and compaction, a few records at a time.
//
//   an op that writes b bytes owes as much ─▶ pay_debt(), before the next op: while few pages are free, drain
//   an op that needs a page and finds none ─▶ ensure_room(): drain one page now, without second chances
//
//   what is drained first: pages without anything alive (they are free at once, log.cc) ─▶ sparse pages (compaction) ─▶
//   the oldest page of the small queue while that has more than its share (kSmallShare), else of the main queue
//
// Chunks of large values do not lie in the log, and what outlives its neighbours leaves their pages mostly empty. While
// too many are to spare, every second page is drained only to put its items' chunks together (gather_chunks).
//
// A record of the page that is drained is dead, or expired or flushed (dropped), or alive: of a sparse page, it moves
// to the head of its queue; of the small queue, read twice or more, to main, else it is evicted and leaves a ghost; of
// the main queue, read since it came there, to main's head with one read less, else it is evicted.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "store/reclaimer.h"

namespace egret::store {

using op::StatId;

namespace {
constexpr size_t kGroup = 16;             // records whose buckets are prefetched together
constexpr uint32_t kSmallShare = 20;      // the small queue may have one part in so many
constexpr uint32_t kLeastPaid = 64;       // units to look at for each debt, at least ...
constexpr uint32_t kMostPaid = 6 * 1024;  // ... and at most, so that a step stays short
constexpr uint32_t kForcedDrains = 2;     // for an op's record, and so many again for each page that its value brings

// Reads that move an item from small to main, and that it gives for another turn in main. What takes the room of
// several others must be read more: with lognormal sizes that saves a thirtieth of the misses. Items alike pay what
// S3-FIFO asks.
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
  uint32_t end = 0;  // units of the page, up to and with it
};
}  // namespace

void Reclaimer::set_usable_pages(uint32_t pages) {
  reserve_ = pages >= 64 ? 2 : 1;
  free_target_ = reserve_ + std::clamp(pages / 256, 2u, 16u);
}

// --- When

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
    wanted = needed();  // what was moved may have left room in a head
  }
  return true;
}

void Reclaimer::pay_debt() {
  const uint32_t debt = std::exchange(debt_, 0);
  const uint32_t free = items_.pages.free_count();
  if (free >= free_target_) return;
  // The fewer pages are free, the faster.
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

// Drains a page to its end, or until so many pages are free. Where nothing may be evicted, this can be in vain.
bool Reclaimer::force_drain(uint32_t wanted_free) {
  const bool hard = evicts_;
  if (items_.log.draining() == kNoPage && !begin_drain(hard)) return false;
  while (items_.log.draining() != kNoPage && items_.pages.free_count() < wanted_free) {
    if (drain_group(hard, wanted_free) == 0) return false;
  }
  return true;
}

// --- Which

bool Reclaimer::begin_drain(bool hard) {
  PageNumber page = hard ? kNoPage : items_.log.sparsest();
  const bool may_gather = items_.work.has_time() && (!hard || items_.work.has_pages());
  gathered_last_ = page == kNoPage && !gathered_last_ && may_gather && items_.pages.wastes_chunks();
  if (gathered_last_) {
    page = items_.log.oldest(Queue::kMain);
    if (page == kNoPage) page = items_.log.oldest(Queue::kSmall);
  }
  compacts_ = page != kNoPage;
  if (page == kNoPage && evicts_) {
    const uint64_t small = items_.log.queue(Queue::kSmall).weight;
    const uint64_t main = items_.log.queue(Queue::kMain).weight;
    const bool small_first = small * kSmallShare >= small + main;
    const std::array<Queue, 2> order{small_first ? Queue::kSmall : Queue::kMain,
                                     small_first ? Queue::kMain : Queue::kSmall};
    for (const Queue queue : order) {
      page = items_.log.oldest(queue);
      // A queue that consists of its head: large values may be most of what there is.
      if (page == kNoPage && items_.log.seal(queue)) page = items_.log.oldest(queue);
      if (page != kNoPage) break;
    }
  }
  if (page == kNoPage) return false;
  items_.log.begin_drain(page);
  drain_at_ = 0;
  ghosts_.fit(items_.index.item_count());
  return true;
}

// --- What becomes of each

// The next few records of the page that is drained, until so many pages are free (one large item may be worth many); at
// its end it is free. Returns the units that were passed; 0: a record has no place to go to.
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
    if (record.is_dead()) continue;
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
  if (at >= used) items_.log.end_drain();
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
  const bool stays = !hard && frequency >= (queue == Queue::kSmall ? price.to_main : price.to_stay);
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
    items_.log.take_weight(from, outside);
    items_.log.add_weight(to, outside);
    if (items_.pages.wastes_chunks()) gather_chunks(items_.item(to));
  }
  slot.set_ref(to);
  slot.set_frequency(frequency);
  items_.log.kill(from);
  items_.work.bytes(units * kUnit);
  items_.counters[StatId::kCopiedBytes] += units * kUnit;
  return true;
}

// Moves chunks to fuller pages, so that emptier ones become free; as many as the step has time for.
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
