// Room for a block, and for the index, when the arena is full.
//
// CLOCK in address order: a hand sweeps over the blocks; an item that was read since it came by is passed over and
// loses one of its reads (up to 3), any other goes. What it frees is merged with its free neighbours, so room for any
// size appears behind the hand, and memory never stays bound to one size of items. A sweep for one block passes over at
// most kSecondChances items; from then on it takes all it meets, until there is room in one piece.
#include <algorithm>

#include "store/store.h"

namespace egret::store {

using op::StatId;

namespace {
constexpr uint32_t kSecondChances = 256;
constexpr uint64_t kIndexRetry = 256;
}  // namespace

ItemRef Store::allocate(uint64_t units, ItemRef keep) {
  const uint32_t wanted = Heap::rounded(units);
  ItemRef ref = heap_.allocate(wanted);
  if (ref || !config_.evict) return ref;
  if (keep) ++item(keep).pins;
  if (make_room(wanted)) ref = heap_.allocate(wanted);
  if (keep) --item(keep).pins;
  return ref;
}

// True: there is a block (or wilderness) for `units`. False: uploads and pins leave no room, after a whole turn.
bool Store::make_room(uint32_t units) {
  uint32_t chances = kSecondChances;
  uint64_t way_left = 2 * uint64_t{heap_.top() - heap_.begin()} + 1;
  while (way_left > 0) {
    if (heap_.has_wilderness(units)) return true;
    if (heap_.hand() >= heap_.top()) {
      if (heap_.top() == heap_.begin()) return false;
      heap_.set_hand(heap_.begin());
    }
    const ItemRef ref{heap_.hand()};
    Item& it = item(ref);
    if (it.has(kFree)) {
      if (it.units >= units) return true;
      heap_.set_hand(ref.unit + it.units);
      continue;
    }
    way_left -= std::min<uint64_t>(way_left, it.units);
    if (!may_evict(it)) {
      heap_.set_hand(ref.unit + it.units);
    } else if (it.has(kFrequency) && chances > 0 && !is_expired(it) && !is_flushed(it)) {
      --chances;
      it.bits = static_cast<uint8_t>(it.bits - kOneRead);
      heap_.set_hand(ref.unit + it.units);
    } else {
      // The merged free block is looked at next.
      heap_.set_hand(evict(ref));
    }
  }
  return false;
}

// Removes a linked, unpinned item to make room; returns where the free space around it starts.
uint32_t Store::evict(ItemRef ref) {
  Item& it = item(ref);
  const bool dead = is_expired(it) || is_flushed(it);
  ++counters_[dead ? StatId::kReclaimed : StatId::kEvictions];
  if (!it.has(kFetched)) ++counters_[dead ? StatId::kExpiredUnfetched : StatId::kEvictedUnfetched];
  index_.erase(index_.hash_of(it), ref);
  it.clear_bits(kLinked);
  --counters_[StatId::kCurrItems];
  counters_[StatId::kBytes] -= it.units * kUnit;
  return heap_.release(ref);
}

// Clears the heap's last granule and gives it to the index. False: a block stands there that must stay.
bool Store::give_granule() {
  if (heap_.end() - heap_.begin() < 2 * Heap::kGranuleUnits) return false;
  const uint32_t from = heap_.last_granule_start();
  if (heap_.top() > from) {
    if (!config_.evict) return false;
    const uint32_t first = heap_.block_covering(from).unit;
    for (uint32_t unit = first; unit < heap_.top(); unit += item({unit}).units) {
      if (!item({unit}).has(kFree) && !may_evict(item({unit}))) return false;
    }
    for (uint32_t unit = first; unit < heap_.top();) {
      if (!item({unit}).has(kFree)) unit = evict({unit});
      if (unit < heap_.top()) unit += item({unit}).units;
    }
  }
  if (!heap_.lower_end()) return false;
  index_.add_granule();
  return true;
}

// The last resort of an insert for which the index has no room: its bucket gives up an item.
bool Store::evict_from_bucket(uint64_t hash) {
  if (!config_.evict) return false;
  ItemRef victim;
  index_.visit_bucket(hash, [&](ItemRef ref) {
    if (may_evict(item(ref))) victim = ref;
    return bool{victim};
  });
  if (victim) evict(victim);
  return bool{victim};
}

bool Store::link(ItemRef ref, ItemRef old, uint64_t hash) {
  Item& it = item(ref);
  if (old) {
    index_.replace(hash, old, ref);
    drop(old);
  } else if (!index_.insert(hash, ref)) {
    const bool done =
        (give_granule() && index_.insert(hash, ref)) || (evict_from_bucket(hash) && index_.insert(hash, ref));
    if (!done) return false;
  }
  index_.grow();
  if (index_.wants_granule() && (index_retry_ == 0 || --index_retry_ == 0)) {
    if (!give_granule()) index_retry_ = kIndexRetry;
  }
  it.set_bits(kLinked);  // only now: an item that is not linked is not evicted
  ++counters_[StatId::kCurrItems];
  ++counters_[StatId::kTotalItems];
  counters_[StatId::kBytes] += it.units * kUnit;
  return true;
}

}  // namespace egret::store
