// Set in all its modes, and Commit, which is a set of an uploaded value.
#include <algorithm>
#include <cstring>

#include "op/item_size.h"
#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;
using op::SetMode;
using op::StatId;

namespace {
bool compares(const op::Op& op) {
  return (op.options & op::kCompareCas) != 0;
}
bool extends(SetMode mode) {
  return mode == SetMode::kAppend || mode == SetMode::kPrepend;
}
bool adds(SetMode mode) {
  return mode == SetMode::kAdd || mode == SetMode::kFill;
}
bool is_plain_set(const op::Op& op) {
  return op.mode == SetMode::kSet && !compares(op);
}
char* copy(char* to, std::string_view from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
  return to + from.size();
}

op::Result created(op::Result result) {
  result.marks = op::kCreated;
  return result;
}
}  // namespace

bool Store::is_too_large(std::string_view key, uint32_t client_flags, uint64_t value_length) const {
  return op::memcached_item_size(key.size(), client_flags, value_length) > config_.item_size_max;
}

op::Result Store::set(const op::Op& op, Slot guess, Upload* upload) {
  const uint64_t length = upload != nullptr ? upload->total_length() : op.value.size();
  if (is_too_large(op.key, op.client_flags, length)) return refuse_set(op, ResultCode::kTooLarge);
  const op::Result result = judge_and_store(op, guess, upload);
  if (result.code == ResultCode::kOutOfMemory) return refuse_set(op, ResultCode::kOutOfMemory);
  ++items_.counters[StatId::kCmdSet];
  return result;
}

op::Result Store::refuse_set(const op::Op& set, ResultCode why) {
  ++items_.counters[why == ResultCode::kTooLarge ? StatId::kStoreTooLarge : StatId::kStoreNoMemory];
  if (why == ResultCode::kOutOfMemory) {
    const uint64_t bytes = Item::units_for(set.key.size(), 0, set.value.size()) * kUnit;
    ++items_.counters.classes[op::size_class_of(bytes)].out_of_memory;
  }
  // The client may assume that its set succeeded: remove the old value, so that nobody reads it. As memcached, an ms
  // does this in every mode.
  const bool is_ms = (set.options & (op::kWantMeta | op::kAsClassic)) == op::kWantMeta && set.mode != SetMode::kFill;
  if (is_plain_set(set) || is_ms) {
    if (const Slot old = find(set.key, set.hash, Slot{})) items_.remove(old, set.hash);
  }
  return answer(why);
}

// memcached's table of modes, CAS and old item. Only a set or a replace with CAS counts as a cas.
op::Result Store::judge_and_store(const op::Op& op, Slot guess, Upload* upload) {
  const Slot old = find(op.key, op.hash, guess);
  const bool is_cas = compares(op) && (op.mode == SetMode::kSet || op.mode == SetMode::kReplace);
  if (!old) {
    if (is_cas) {
      ++items_.counters[StatId::kCasMisses];
      return answer(ResultCode::kMiss);
    }
    if (extends(op.mode) && (op.options & op::kVivify) != 0) {
      op::Op made = op;
      made.exptime = op.vivify_exptime;
      return created(replace_value(made, old, upload, 0));
    }
    if (op.mode != SetMode::kSet && !adds(op.mode)) return answer(ResultCode::kNotStored);
    return created(replace_value(op, old, upload, 0));
  }
  if (adds(op.mode)) {
    if (op.mode == SetMode::kAdd) Slot(old).note_read();  // a refused add counts as a read
    return answer(ResultCode::kNotStored);
  }
  const uint64_t cas = items_.cas_of(items_.item(old));
  const bool matches = !compares(op) || op.cas == cas;
  // A value made from an older version is stored, but marked as stale.
  const bool stays_stale = !matches && (op.options & op::kInvalidate) != 0 && op.cas < cas && !extends(op.mode);
  if (is_cas) ++items_.counters[matches || stays_stale ? StatId::kCasHits : StatId::kCasBadval];
  if (!matches && !stays_stale) return answer(ResultCode::kExists);
  if (extends(op.mode)) return extend_value(op, old, upload);
  return replace_value(op, old, upload, stays_stale ? kStale | (items_.item(old).bits() & kTokenSent) : 0);
}

op::Result Store::stored(ItemRef ref) {
  op::Result result = answer(ResultCode::kStored);
  result.version = items_.item(ref).version();
  result.cas = items_.cas_of(items_.item(ref));
  result.number = value_length(items_.item(ref));
  return result;
}

// --- Records

// A large item always has every optional field, so that it never has to move to get one; pinned items cannot move.
Bits Store::Draft::layout() const {
  if (is_large()) return kLarge | kHasExptime | kHasFlags | kHasCas;
  return static_cast<Bits>((deadline != 0 ? kHasExptime : 0) | (client_flags != 0 ? kHasFlags : 0) |
                           (given_cas ? kHasCas : 0));
}

uint64_t Store::Draft::inline_length() const {
  if (pieces == nullptr) return first.size() + second.size();
  return is_large() ? pieces->listed_size() : pieces->length();
}

void Store::write(const Draft& draft, ItemRef ref) {
  Item& it = items_.item(ref);
  const Bits layout = draft.layout();
  it.lay_out(draft.key.size(), static_cast<Bits>(layout | draft.marks), draft.inline_length(), items_.version++,
             items_.now);
  if ((layout & kHasExptime) != 0) it.set_exptime(draft.deadline);
  if ((layout & kHasFlags) != 0) it.set_client_flags(draft.client_flags);
  it.set_given_cas(draft.given_cas);
  copy(it.key_data(), draft.key);
  if (draft.pieces == nullptr) {
    copy(copy(it.inline_data(), draft.first), draft.second);
  } else if (draft.is_large()) {
    const uint64_t taken_over = draft.pieces->taken_over();
    draft.pieces->list(it.inline_data());
    const uint64_t chunks = large_head(it).chunks;
    items_.log.count_large(ref, static_cast<int64_t>(chunks * kChunkSize));
    items_.counters[StatId::kInsertedBytes] += (chunks - std::min(chunks, taken_over)) * kChunkSize;
  } else {
    draft.pieces->copy_out(it.inline_data());
    draft.pieces->clear();
  }
  items_.counters[StatId::kInsertedBytes] += it.units() * kUnit;
  ++items_.counters[StatId::kTotalItems];
}

// Writes the draft over the old record if it fits there; else every overwrite would leave a dead record behind.
bool Store::overwrite(const Draft& draft, Slot old) {
  const ItemRef ref = old.ref();
  if (draft.is_large() || items_.item(ref).has(kPinned | kLarge) || draft.units() > items_.item(ref).units())
    return false;
  items_.count_out(items_.item(ref));
  items_.log.shrink(ref, draft.units());
  write(draft, ref);
  items_.count_in(items_.item(ref));
  set_expires(old, draft.deadline != 0);
  old.note_read();
  return true;
}

ItemRef Store::place(const Draft& draft, uint64_t hash) {
  const uint32_t units = draft.units();
  if (!reclaimer_.ensure_room(units, 0)) return {};
  Slot old = items_.index.find(draft.key, hash);  // after ensure_room(), which may move or evict it
  Queue queue = Queue::kSmall;
  if (old) {
    queue = items_.log.queue_of(old.ref());
  } else if (ghosts_.take(hash)) {
    queue = Queue::kMain;
    ++items_.counters[StatId::kGhostHits];
  }
  const ItemRef ref = items_.log.append(queue, units);
  EGRET_CHECK(bool{ref});
  reclaimer_.owe(units);
  write(draft, ref);
  items_.count_in(items_.item(ref));
  if (old) {
    const ItemRef before = old.ref();
    old.set_ref(ref);
    old.note_read();
    set_expires(old, draft.deadline != 0);
    items_.drop(before);
  } else {
    set_expires(items_.index.insert(hash, ref), draft.deadline != 0);
    items_.index.grow(reclaimer_.reserve());
  }
  return ref;
}

Slot Store::relay(Slot slot, uint64_t hash, Bits field) {
  const std::string_view key = items_.item(slot).key();
  const auto bits = static_cast<Bits>(items_.item(slot).bits() | field);
  const uint32_t units = Item::units_for(key.size(), bits, items_.item(slot).inline_length());
  std::array<char, op::kMaxKeyLength> name{};
  copy(name.data(), key);
  const std::string_view named(name.data(), key.size());
  if (!reclaimer_.ensure_room(units, 0)) return Slot{};
  slot = items_.index.find(named, hash);
  if (!slot) return Slot{};
  const ItemRef from = slot.ref();
  const ItemRef to = items_.log.append(items_.log.queue_of(from), units);
  EGRET_CHECK(bool{to});
  reclaimer_.owe(units);
  const Item& before = items_.item(from);
  Item& it = items_.item(to);
  it.lay_out(key.size(), static_cast<Bits>(bits & ~kPinned), before.inline_length(), before.version(),
             before.last_access());
  if (it.has(kHasExptime)) it.set_exptime(before.exptime());
  if (it.has(kHasFlags)) it.set_client_flags(before.client_flags());
  it.set_given_cas(before.given_cas());
  copy(copy(it.key_data(), named), before.inline_bytes());
  items_.count_in(it);
  slot.set_ref(to);
  items_.drop(from);
  return slot;
}

// --- Values

op::Result Store::replace_value(const op::Op& op, Slot old, Upload* upload, Bits marks) {
  // A value that stays stale keeps the old exptime.
  const uint32_t deadline = (marks & kStale) != 0 ? items_.item(old).exptime() : deadline_of(op.exptime);
  Draft draft{.key = op.key,
              .deadline = deadline,
              .client_flags = op.client_flags,
              .given_cas = given_cas_of(op),
              .marks = marks,
              .first = op.value};
  Pieces pieces(items_.pages);
  if (upload != nullptr) {
    pieces = upload->take_pieces();
    draft.pieces = &pieces;
  } else if (op.value.size() > kMaxInline) {
    pieces.expect(static_cast<uint32_t>(op.value.size()));
    if (!reclaimer_.ensure_room(0, pieces.pages_needed(static_cast<uint32_t>(op.value.size())))) return no_room();
    pieces.write(op.value);
    reclaimer_.owe(static_cast<uint32_t>(op.value.size() / kUnit));
    draft.pieces = &pieces;
  }
  old = items_.index.find(op.key, op.hash);
  if (old && overwrite(draft, old)) return stored(old.ref());
  const ItemRef ref = place(draft, op.hash);
  return ref ? stored(ref) : no_room();
}

// Expired items may take all the room: have them swept as soon as possible.
op::Result Store::no_room() {
  sweeper_.on_no_room();
  return answer(ResultCode::kOutOfMemory);
}

// Append and prepend: flags and exptime stay. If the result does not fit, the old value stays.
op::Result Store::extend_value(const op::Op& op, Slot old, Upload* upload) {
  const uint64_t added = upload != nullptr ? upload->total_length() : op.value.size();
  const uint64_t total = value_length(items_.item(old)) + added;
  if (is_too_large(op.key, items_.item(old).client_flags(), total)) return answer(ResultCode::kNotStored);
  if (upload != nullptr || total > kMaxInline || items_.item(old).has(kLarge)) return extend_large(op, old, upload);
  const bool appends = op.mode == SetMode::kAppend;
  Item& before = items_.item(old);
  const bool is_bare = !given_cas_of(op) && !before.has(kPinned | kHasCas);
  if (is_bare && Item::units_for(op.key.size(), before.bits(), total) == before.units()) {
    char* const value = before.inline_data();
    if (!appends) std::memmove(value + added, value, before.inline_length());
    copy(appends ? value + before.inline_length() : value, op.value);
    before.set_inline_length(total);
    before.set_version(items_.version++);
    before.clear_bits(kFetched | kStale | kTokenSent);
    ++items_.counters[StatId::kTotalItems];
    return stored(old.ref());
  }
  const uint32_t most = Item::units_for(op.key.size(), kLayoutBits, total);
  if (!reclaimer_.ensure_room(most, 0)) return answer(ResultCode::kNotStored);
  old = items_.index.find(op.key, op.hash);
  if (!old) return answer(ResultCode::kNotStored);  // making room evicted it
  const std::string_view value = items_.item(old).inline_bytes();
  const Draft draft{.key = op.key,
                    .deadline = items_.item(old).exptime(),
                    .client_flags = items_.item(old).client_flags(),
                    .given_cas = given_cas_of(op),
                    .first = appends ? value : op.value,
                    .second = appends ? op.value : value};
  const ItemRef ref = place(draft, op.hash);
  return ref ? stored(ref) : answer(ResultCode::kNotStored);
}

void Store::copy_value(const Item& from, Pieces& to) {
  const uint32_t length = value_length(from);
  for (uint32_t at = 0; at < length;) {
    const std::string_view piece = piece_at(items_.pages, from, at);
    to.write(piece);
    at += static_cast<uint32_t>(piece.size());
  }
  items_.work.bytes(length);
}

// The new list takes over the old item's pages and chunks: only the added bytes and a tail are copied. A pinned value
// is copied whole if it is small enough; else its reader finds it changed and starts again.
op::Result Store::extend_large(const op::Op& op, Slot old, Upload* upload) {
  const auto added = static_cast<uint32_t>(upload != nullptr ? upload->total_length() : op.value.size());
  const size_t extents = (items_.item(old).has(kLarge) ? large_head(items_.item(old)).extents : 2) +
                         (upload != nullptr && added > kPageSize ? upload->extents() : added / kChunkSize) + 3;
  if (extents > kMaxExtents) return answer(ResultCode::kNotStored);
  const bool takes_over = items_.item(old).has(kLarge) &&
                          (!items_.item(old).has(kPinned) || value_length(items_.item(old)) > Pin::kMostCopied);
  Pieces pieces(items_.pages);
  // Choose pages or chunks for a prepended part by its own length, not by the length of the whole value.
  const bool appends = op.mode == SetMode::kAppend;
  pieces.expect(appends ? value_length(items_.item(old)) + added : added);
  // An upper bound: a record with the list and a tail, the added bytes, and chunks for the old value or its tail.
  const uint32_t most =
      Item::units_for(op.key.size(), kLayoutBits, sizeof(LargeHead) + extents * sizeof(Extent) + kChunkSize);
  // Copy a short upload behind the old value: taking over its chunks would leave the one before them partly filled.
  const bool copies = upload == nullptr || (appends && added <= kPageSize);
  const uint32_t for_added = copies ? pieces.pages_needed(added) : 0;
  const uint32_t for_old = takes_over ? 1 : pieces.pages_needed(value_length(items_.item(old)));
  if (!reclaimer_.ensure_room(most, for_added + for_old)) return answer(ResultCode::kNotStored);
  old = items_.index.find(op.key, op.hash);
  if (!old) return answer(ResultCode::kNotStored);
  Item& before = items_.item(old);
  const auto put_old = [&] {
    if (takes_over) {
      pieces.take_over(before);
      disown(old.ref());
      return;
    }
    copy_value(before, pieces);
  };
  const auto put_added = [&] {
    if (!copies) return pieces.join(upload->take_pieces());
    if (upload != nullptr) {
      pieces.write(upload->take_pieces());
    } else {
      pieces.write(op.value);
    }
    reclaimer_.owe(static_cast<uint32_t>(added / kUnit));
  };
  if (appends) {
    put_old();
    put_added();
  } else {
    put_added();
    put_old();
  }
  const Draft draft{.key = op.key,
                    .deadline = before.exptime(),
                    .client_flags = before.client_flags(),
                    .given_cas = given_cas_of(op),
                    .pieces = &pieces};
  const ItemRef ref = place(draft, op.hash);
  EGRET_CHECK(bool{ref});  // room was made before the old item was taken apart
  return stored(ref);
}

// Sets the item's length to 0: another list owns its pages and chunks now, and the item is about to be replaced. A
// reader that has it pinned sees the changed length and starts again.
void Store::disown(ItemRef ref) {
  Item& it = items_.item(ref);
  items_.count_out(it);
  const LargeHead head = large_head(it);
  items_.log.count_large(ref, -static_cast<int64_t>(head.chunks * kChunkSize));
  const LargeHead nothing{};
  std::memcpy(it.inline_data(), &nothing, sizeof nothing);
  items_.count_in(it);
}

}  // namespace egret::store
