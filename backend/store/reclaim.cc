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

#include "store/store.h"

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

// --- When

// Whether an op may write a record of so many units, and take so many pages besides. May move or evict anything that is
// not pinned: slots and views from before are void.
bool Store::ensure_room(uint32_t units, uint32_t pages) {
  const auto needed = [&] {
    if (units == 0) return pages;
    const bool fits = log_.has_room(Queue::kSmall, units) && log_.has_room(Queue::kMain, units);
    return pages + (fits ? 0 : 1) + (index_.may_need_page() ? 1 : 0);
  };
  work_.brings(pages);
  uint32_t wanted = needed();
  for (uint32_t drains = 0; wanted > 0 && pages_.free_count() < reserve_ + wanted; ++drains) {
    if (drains == kForcedDrains + 2 * pages || !force_drain(reserve_ + wanted)) return false;
    wanted = needed();  // what was moved may have left room in a head
  }
  return true;
}

void Store::pay_debt() {
  const uint32_t debt = std::exchange(debt_, 0);
  const uint32_t free = pages_.free_count();
  if (free >= free_target_) return;
  // The fewer pages are free, the faster.
  const uint32_t factor = 2 + 4 * (free_target_ - free) / free_target_;
  reclaim(std::clamp(debt * factor, kLeastPaid, kMostPaid));
}

// Looks at records of about so many units, or until enough pages are free. Returns how many it looked at.
uint32_t Store::reclaim(uint32_t units) {
  uint32_t done = 0;
  while (done < units && pages_.free_count() < free_target_) {
    if (log_.draining() == kNoPage && !begin_drain(false)) break;
    const uint32_t passed = drain_group(false, free_target_);
    if (passed == 0) break;
    done += passed;
  }
  return done;
}

// Drains a page to its end, or until so many pages are free. Where nothing may be evicted, this can be in vain.
bool Store::force_drain(uint32_t wanted_free) {
  const bool hard = config_.evict;
  if (log_.draining() == kNoPage && !begin_drain(hard)) return false;
  while (log_.draining() != kNoPage && pages_.free_count() < wanted_free) {
    if (drain_group(hard, wanted_free) == 0) return false;
  }
  return true;
}

// --- Which

bool Store::begin_drain(bool hard) {
  PageNumber page = hard ? kNoPage : log_.sparsest();
  const bool may_gather = work_.has_time() && (!hard || work_.has_pages());
  gathered_last_ = page == kNoPage && !gathered_last_ && may_gather && pages_.wastes_chunks();
  if (gathered_last_) {
    page = log_.oldest(Queue::kMain);
    if (page == kNoPage) page = log_.oldest(Queue::kSmall);
  }
  compacts_ = page != kNoPage;
  if (page == kNoPage && config_.evict) {
    const uint64_t small = log_.queue(Queue::kSmall).weight;
    const uint64_t main = log_.queue(Queue::kMain).weight;
    const bool small_first = small * kSmallShare >= small + main;
    const std::array<Queue, 2> order{small_first ? Queue::kSmall : Queue::kMain,
                                     small_first ? Queue::kMain : Queue::kSmall};
    for (const Queue queue : order) {
      page = log_.oldest(queue);
      // A queue that consists of its head: large values may be most of what there is.
      if (page == kNoPage && log_.seal(queue)) page = log_.oldest(queue);
      if (page != kNoPage) break;
    }
  }
  if (page == kNoPage) return false;
  log_.begin_drain(page);
  drain_at_ = 0;
  ghosts_.fit(index_.item_count());
  return true;
}

// --- What becomes of each

// The next few records of the page that is drained, until so many pages are free (one large item may be worth many); at
// its end it is free. Returns the units that were passed; 0: a record has no place to go to.
uint32_t Store::drain_group(bool hard, uint32_t wanted_free) {
  const PageNumber page = log_.draining();
  const uint32_t used = pages_.info(page).used;
  const uint32_t start = drain_at_;
  std::array<Candidate, kGroup> group;
  size_t count = 0;
  uint32_t at = start;
  uint32_t passed = 0;
  for (; at < used && count < kGroup && passed < 4 * kGroup; ++passed) {
    const ItemRef ref{uint64_t{page} * kUnitsPerPage + at};
    const Item& record = item(ref);
    at += record.units();
    if (record.is_dead()) continue;
    group[count++] = {ref, index_.hash_of(record), at};
    index_.prefetch(group[count - 1].hash);
    if (!compacts_) ghosts_.prefetch(group[count - 1].hash);
  }
  work_.records(passed);
  for (size_t i = 0; i < count; ++i) {
    if (!settle(group[i].ref, group[i].hash, hard)) return 0;
    drain_at_ = group[i].end;
    if (i + 1 < count && pages_.free_count() >= wanted_free) return drain_at_ - start;
  }
  drain_at_ = at;
  if (at >= used) log_.end_drain();
  return at - start + 1;
}

bool Store::settle(ItemRef ref, uint64_t hash, bool hard) {
  const Slot slot = index_.find(ref, hash);
  EGRET_DCHECK(bool{slot});
  const Item& it = item(ref);
  if (is_flushed(it) || is_expired(it)) return reclaim_dead(slot, hash), true;
  const Queue queue = log_.queue_of(ref);
  if (compacts_) {
    if (keep(slot, queue, slot.frequency())) return true;
    if (config_.evict) return evict(slot, hash, queue), true;
    log_.stop_drain();
    return false;
  }
  const uint32_t frequency = slot.frequency();
  const Price price = price_of(item_bytes(it), counters_[StatId::kBytes] / counters_[StatId::kCurrItems]);
  const bool stays = !hard && frequency >= (queue == Queue::kSmall ? price.to_main : price.to_stay);
  const uint32_t left = queue == Queue::kSmall ? 0 : frequency - price.to_stay;
  if (!stays || !keep(slot, Queue::kMain, left)) evict(slot, hash, queue);
  return true;
}

// Moves the record to a head. False: there is no page for that.
bool Store::keep(Slot slot, Queue queue, uint32_t frequency) {
  const ItemRef from = slot.ref();
  const uint32_t units = item(from).units();
  const ItemRef to = log_.append(queue, units);
  if (!to) return false;
  std::memcpy(static_cast<void*>(&item(to)), static_cast<const void*>(&item(from)), units * kUnit);
  if (item(to).has(kLarge)) {
    const uint64_t outside = large_head(item(to)).chunks * kChunkSize;
    log_.take_weight(from, outside);
    log_.add_weight(to, outside);
    if (pages_.wastes_chunks()) gather_chunks(item(to));
  }
  slot.set_ref(to);
  slot.set_frequency(frequency);
  log_.kill(from);
  work_.bytes(units * kUnit);
  counters_[StatId::kCopiedBytes] += units * kUnit;
  return true;
}

// Moves chunks to fuller pages, so that emptier ones become free; as many as the step has time for.
void Store::gather_chunks(Item& item) {
  const uint32_t extents = large_head(item).extents;
  for (uint32_t i = 0; i < extents && work_.has_time(); ++i) {
    const Extent extent = extent_of(item, i);
    const uint64_t from = first_chunk(extent);
    if (pages_.info(static_cast<PageNumber>(from / kChunksPerPage)).use != PageUse::kChunks) continue;
    const uint64_t to = pages_.take_denser_chunk(from);
    if (to == 0) continue;
    std::memcpy(pages_.chunk_data(to), pages_.chunk_data(from), kChunkSize);
    set_extent(item, i, to << kEndBits | end_of(extent));
    pages_.give_chunk(from);
    work_.bytes(kChunkSize);
    counters_[StatId::kCopiedBytes] += kChunkSize;
  }
}

void Store::evict(Slot slot, uint64_t hash, Queue queue) {
  const Item& it = item(slot);
  Counters::Class& its = counters_.classes[op::size_class_of(item_bytes(it))];
  ++counters_[StatId::kEvictions];
  ++its.evicted;
  its.evicted_time = now_ - std::min(now_, it.last_access());
  if (it.exptime() != 0) ++its.evicted_nonzero;
  if (!it.has(kFetched)) {
    ++counters_[StatId::kEvictedUnfetched];
    ++its.evicted_unfetched;
  } else if (slot.frequency() > 1) {
    ++its.evicted_active;
  }
  if (evictions_.is_watched()) [[unlikely]]
    evictions_.add(record_of(it), it.key());
  if (queue == Queue::kSmall) ghosts_.add(hash);
  remove(slot, hash);
}

// Room that an item's death has left to be used.
void Store::reclaim_dead(Slot slot, uint64_t hash) {
  const Item& it = item(slot);
  Counters::Class& its = counters_.classes[op::size_class_of(item_bytes(it))];
  ++counters_[StatId::kReclaimed];
  ++its.reclaimed;
  if (!is_flushed(it)) {
    ++counters_[StatId::kExpired];
    if (!it.has(kFetched)) {
      ++counters_[StatId::kExpiredUnfetched];
      ++its.expired_unfetched;
    }
  }
  remove(slot, hash);
}

}  // namespace egret::store
