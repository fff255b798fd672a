// Get (with touch, and the meta commands' vivify and recache), Chunk and Delete (with invalidate).
#include <algorithm>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
constexpr uint16_t kMetaOptions = op::kWantMeta | op::kRecache;  // a get with one of these may win the recache
}

// Fills in a hit's fields, except for the value.
inline void Store::describe(const Item& item, bool with_cas, op::Result& result) const {
  result.code = ResultCode::kHit;
  result.client_flags = item.client_flags();
  result.total_length = value_length(item);
  result.version = item.version();
  if (with_cas) result.cas = items_.cas_of(item);
}

op::Result Store::hit(const Item& item, bool with_cas) const {
  op::Result result;
  describe(item, with_cas, result);
  return result;
}

// Points the result at `length` bytes of the value from `offset` on, in place: the caller's copy is the only one.
void Store::give(const Item& item, uint32_t offset, uint32_t length, op::Result& result) {
  result.value = piece_at(items_.pages, item, offset).substr(0, length);
  size_t count = 0;
  for (uint32_t given = static_cast<uint32_t>(result.value.size()); given < length; ++count) {
    further_[count] = piece_at(items_.pages, item, offset + given).substr(0, length - given);
    given += static_cast<uint32_t>(further_[count].size());
  }
  result.further = {further_.get(), count};
}

// Points the result at the first kMaxChunk bytes of the value: more never fits a slot.
inline void Store::give_beginning(const Item& item, op::Result& result) {
  if (!item.has(kLarge)) {
    result.value = item.inline_bytes();
  } else {
    give(item, 0, std::min(result.total_length, kMaxChunk), result);
  }
}

// A get of the value, perhaps with the CAS: the most frequent op. It has one result variable, so that the compiler
// builds it in the caller's place.
op::Result Store::plain_get(const op::Op& op, Slot guess) {
  op::Result result;
  ++items_.counters[StatId::kCmdGet];
  if (Slot slot = find(op.key, op.hash, guess)) {
    ++items_.counters[StatId::kGetHits];
    Item& it = items_.item(slot);
    describe(it, (op.options & op::kWantCas) != 0, result);
    give_beginning(it, result);
    slot.note_read();
    it.note_read(items_.now);
  } else {
    ++items_.counters[StatId::kGetMisses];
    result.code = ResultCode::kMiss;
  }
  return result;
}

// As memcached: a key of gat or touch counts as a touch, not as a get.
op::Result Store::get(const op::Op& op, Slot guess) {
  if ((op.options & op::kPeek) != 0) return peek(op);
  const bool touches = (op.options & op::kTouch) != 0;
  ++items_.counters[touches ? StatId::kCmdTouch : StatId::kCmdGet];
  Slot slot = find(op.key, op.hash, guess);
  const bool hits = slot || (op.options & op::kVivify) != 0;
  ++items_.counters[touches ? (hits ? StatId::kTouchHits : StatId::kTouchMisses)
                            : (hits ? StatId::kGetHits : StatId::kGetMisses)];
  if (!slot) return hits ? vivify(op) : answer(ResultCode::kMiss);
  op::Result result = hit(items_.item(slot), (op.options & op::kWantCas) != 0);
  if ((op.options & kMetaOptions) != 0) before_access(op, items_.item(slot), result);
  const bool bumps = (op.options & op::kNoBump) == 0;
  if (bumps) slot.note_read();
  if (touches && !touch(slot, op)) return no_room();
  Item& it = items_.item(slot);
  if ((op.options & op::kNewTtl) != 0) result.ttl = ttl_of(it);
  if (bumps) it.note_read(items_.now);
  if ((op.options & op::kCompareCas) != 0 && op.cas == items_.cas_of(it)) {
    result.total_length = 0;
  } else if ((op.options & op::kNoValue) == 0) {
    give_beginning(it, result);
  }
  return result;
}

// `me`: reads without changing recency, counters or flags.
op::Result Store::peek(const op::Op& op) {
  const Slot slot = peek(op.key, op.hash);
  if (!slot) return answer(ResultCode::kMiss);
  op::Result result = hit(items_.item(slot), (op.options & op::kWantCas) != 0);
  add_meta(op, items_.item(slot), result);
  if (items_.item(slot).has(kStale)) result.marks |= op::kStale;
  if ((op.options & op::kNoValue) == 0) give_beginning(items_.item(slot), result);
  return result;
}

void Store::add_meta(const op::Op& op, const Item& item, op::Result& result) const {
  if ((op.options & op::kWantMeta) == 0) return;
  if (item.has(kFetched)) result.marks |= op::kFetched;
  result.last_access = items_.now - std::min(items_.now, item.last_access());
  result.ttl = ttl_of(item);
}

int64_t Store::ttl_of(const Item& item) const {
  return item.exptime() == 0 ? -1 : int64_t{item.exptime()} - items_.now;
}

// Reports the state before this access. The first reader of a stale or soon expiring item wins and stores it anew;
// until that is done other readers do not win.
void Store::before_access(const op::Op& op, Item& item, op::Result& result) const {
  add_meta(op, item, result);
  if (item.has(kStale)) result.marks |= op::kStale;
  if (item.has(kTokenSent)) {
    result.marks |= op::kTokenSent;
    return;
  }
  const uint32_t exptime = (op.options & op::kTouchFirst) != 0 ? deadline_of(op.exptime) : item.exptime();
  const bool ends_soon =
      (op.options & op::kRecache) != 0 && exptime != 0 && int64_t{exptime} - items_.now < op.recache_below;
  if (!item.has(kStale) && !ends_soon) return;
  result.marks |= op::kWon;
  item.set_bits(kTokenSent);
}

// Creates a missing item, empty; its creator wins and stores the value.
op::Result Store::vivify(const op::Op& op) {
  const std::optional<uint64_t> given_cas = given_cas_of(op);
  const ItemRef ref =
      place({.key = op.key, .deadline = deadline_of(op.vivify_exptime), .given_cas = given_cas, .marks = kTokenSent},
            op.hash);
  if (!ref) return no_room();
  op::Result result = hit(items_.item(ref), (op.options & op::kWantCas) != 0);
  result.marks = op::kWon | op::kCreated;
  if ((op.options & op::kWantMeta) != 0) result.ttl = ttl_of(items_.item(ref));
  if ((op.options & op::kNoBump) == 0) items_.item(ref).note_read(items_.now);
  return result;
}

// Gives the item another deadline. An item without an exptime field may have to move; `slot` is then updated. False:
// there is no room to move it.
bool Store::touch(Slot& slot, const op::Op& op) {
  const uint32_t deadline = deadline_of(op.exptime);
  if (!items_.item(slot).has(kHasExptime)) {
    if (deadline == 0) return true;
    slot = relay(slot, op.hash, kHasExptime);
    if (!slot) return false;
  }
  items_.item(slot).set_exptime(deadline);
  set_expires(slot, deadline != 0);
  return true;
}

op::Result Store::chunk(const op::Op& op) {
  const Slot slot = peek(op.key, op.hash);
  if (!slot || items_.item(slot).version() != op.version) return answer(ResultCode::kChanged);
  return chunk_of(items_.item(slot), op.offset, op.length);
}

op::Result Store::chunk_of(const Item& item, uint32_t offset, uint32_t length) {
  const uint32_t whole = value_length(item);
  if (offset > whole) return answer(ResultCode::kInvalid);
  op::Result result = hit(item, true);
  give(item, offset, std::min({length, whole - offset, kMaxChunk}), result);
  return result;
}

op::Result Store::erase(const op::Op& op, Slot guess) {
  const Slot slot = find(op.key, op.hash, guess);
  if (!slot) {
    ++items_.counters[StatId::kDeleteMisses];
    return answer(ResultCode::kMiss);
  }
  if ((op.options & op::kCompareCas) != 0 && op.cas != items_.cas_of(items_.item(slot)))
    return answer(ResultCode::kExists);
  if ((op.options & op::kDropValue) != 0) return drop_value(op, slot);
  if ((op.options & op::kInvalidate) != 0) return invalidate(op, slot);
  ++items_.counters[StatId::kDeleteHits];
  op::Result result = answer(ResultCode::kDeleted);
  result.number = value_length(items_.item(slot));
  items_.remove(slot, op.hash);
  return result;
}

// Marks the item as stale; it can be read until it is stored anew.
op::Result Store::invalidate(const op::Op& op, Slot slot) {
  const std::optional<uint64_t> given_cas = given_cas_of(op);
  if (given_cas && !items_.item(slot).has(kHasCas)) {
    slot = relay(slot, op.hash, kHasCas);
    if (!slot) return no_room();
  }
  if ((op.options & op::kTouch) != 0 && !touch(slot, op)) return no_room();
  Item& it = items_.item(slot);
  it.clear_bits(kTokenSent);
  it.set_bits(kStale);
  it.set_version(items_.version++);
  it.set_given_cas(given_cas);
  return answer(ResultCode::kDeleted);
}

op::Result Store::drop_value(const op::Op& op, Slot slot) {
  const bool invalidates = (op.options & op::kInvalidate) != 0;
  std::optional<uint64_t> given_cas = given_cas_of(op);
  if (!given_cas && !invalidates) given_cas = items_.cas_of(items_.item(slot));  // keep the CAS: it is the same item
  const Draft empty{.key = op.key,
                    .deadline = (op.options & op::kTouch) != 0 ? deadline_of(op.exptime) : 0,
                    .given_cas = given_cas,
                    .marks = static_cast<Bits>(invalidates ? kStale : 0)};
  if (!overwrite(empty, slot) && !place(empty, op.hash)) return no_room();
  return answer(ResultCode::kDeleted);
}

}  // namespace egret::store
