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
constexpr uint32_t kMostCopied = 1u << 20;

bool compares(const op::Op& op) {
  return (op.options & op::kCompareCas) != 0;
}
bool extends(SetMode mode) {
  return mode == SetMode::kAppend || mode == SetMode::kPrepend;
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

op::Result Store::set(const op::Op& op, Upload* upload) {
  const uint64_t length = upload != nullptr ? upload->total_length() : op.value.size();
  if (is_too_large(op.key, op.client_flags, length)) return refuse_set(op, ResultCode::kTooLarge);
  const op::Result result = judge_and_store(op, upload);
  if (result.code == ResultCode::kOutOfMemory) return refuse_set(op, ResultCode::kOutOfMemory);
  ++counters_[StatId::kCmdSet];
  return result;
}

op::Result Store::refuse_set(const op::Op& set, ResultCode why) {
  ++counters_[why == ResultCode::kTooLarge ? StatId::kStoreTooLarge : StatId::kStoreNoMemory];
  if (why == ResultCode::kOutOfMemory) {
    const uint64_t bytes = Item::units_for(set.key.size(), 0, set.value.size()) * kUnit;
    ++counters_.classes[op::size_class_of(bytes)].out_of_memory;
  }
  // A client that believes in its set must not go on reading the value before it. An ms is one in every mode.
  if (is_plain_set(set) || (set.options & (op::kWantMeta | op::kAsClassic)) == op::kWantMeta) {
    if (const Slot old = find(set.key, set.hash)) remove(old, set.hash);
  }
  return answer(why);
}

// memcached's table of modes, CAS and old item. Only a set or a replace with CAS counts as a cas.
op::Result Store::judge_and_store(const op::Op& op, Upload* upload) {
  const Slot old = find(op.key, op.hash);
  const bool is_cas = compares(op) && (op.mode == SetMode::kSet || op.mode == SetMode::kReplace);
  if (!old) {
    if (is_cas) {
      ++counters_[StatId::kCasMisses];
      return answer(ResultCode::kMiss);
    }
    if (extends(op.mode) && (op.options & op::kVivify) != 0) {
      op::Op made = op;
      made.exptime = op.vivify_exptime;
      return created(replace_value(made, old, upload, 0));
    }
    if (op.mode != SetMode::kSet && op.mode != SetMode::kAdd) return answer(ResultCode::kNotStored);
    return created(replace_value(op, old, upload, 0));
  }
  if (op.mode == SetMode::kAdd) {
    Slot(old).note_read();  // whoever wanted to add it has use for it
    return answer(ResultCode::kNotStored);
  }
  const uint64_t cas = cas_of(item(old));
  const bool matches = !compares(op) || op.cas == cas;
  // What was made from an older state is better than nothing, but stays marked as such.
  const bool stays_stale = !matches && (op.options & op::kInvalidate) != 0 && op.cas < cas && !extends(op.mode);
  if (is_cas) ++counters_[matches || stays_stale ? StatId::kCasHits : StatId::kCasBadval];
  if (!matches && !stays_stale) return answer(ResultCode::kExists);
  if (extends(op.mode)) return extend_value(op, old, upload);
  return replace_value(op, old, upload, stays_stale ? kStale | (item(old).bits() & kTokenSent) : 0);
}

op::Result Store::stored(ItemRef ref) {
  op::Result result = answer(ResultCode::kStored);
  result.version = item(ref).version();
  result.cas = cas_of(item(ref));
  result.number = value_length(item(ref));
  return result;
}

// --- Records

// A large item has a field for everything, so that it never has to move for one: it could not if it is pinned.
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
  Item& it = item(ref);
  const Bits layout = draft.layout();
  it.lay_out(draft.key.size(), static_cast<Bits>(layout | draft.marks), draft.inline_length(), version_++, now_);
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
    log_.add_weight(ref, chunks * kChunkSize);
    counters_[StatId::kInsertedBytes] += (chunks - std::min(chunks, taken_over)) * kChunkSize;
  } else {
    draft.pieces->copy_out(it.inline_data());
    draft.pieces->clear();
  }
  counters_[StatId::kInsertedBytes] += it.units() * kUnit;
  ++counters_[StatId::kTotalItems];
}

// Without this, every overwrite would leave a hole to be reclaimed.
bool Store::overwrite(const Draft& draft, Slot old) {
  const ItemRef ref = old.ref();
  if (draft.is_large() || item(ref).has(kPinned | kLarge) || draft.units() > item(ref).units()) return false;
  count_out(item(ref));
  log_.shrink(ref, draft.units());
  write(draft, ref);
  count_in(item(ref));
  set_expires(old, draft.deadline != 0);
  old.note_read();
  return true;
}

ItemRef Store::place(const Draft& draft, uint64_t hash) {
  const uint32_t units = draft.units();
  if (!ensure_room(units, 0)) return {};
  Slot old = index_.find(draft.key, hash);  // only now: making room may have moved or evicted it
  Queue queue = Queue::kSmall;
  if (old) {
    queue = log_.queue_of(old.ref());
  } else if (ghosts_.take(hash)) {
    queue = Queue::kMain;
    ++counters_[StatId::kGhostHits];
  }
  const ItemRef ref = log_.append(queue, units);
  EGRET_CHECK(bool{ref});
  debt_ += units;
  write(draft, ref);
  count_in(item(ref));
  if (old) {
    const ItemRef before = old.ref();
    old.set_ref(ref);
    old.note_read();
    set_expires(old, draft.deadline != 0);
    drop(before);
  } else {
    set_expires(index_.insert(hash, ref), draft.deadline != 0);
    index_.grow(reserve_);
  }
  return ref;
}

Slot Store::relay(Slot slot, uint64_t hash, Bits field) {
  const std::string_view key = item(slot).key();
  const auto bits = static_cast<Bits>(item(slot).bits() | field);
  const uint32_t units = Item::units_for(key.size(), bits, item(slot).inline_length());
  std::array<char, op::kMaxKeyLength> name{};
  copy(name.data(), key);
  const std::string_view named(name.data(), key.size());
  if (!ensure_room(units, 0)) return Slot{};
  slot = index_.find(named, hash);
  if (!slot) return Slot{};
  const ItemRef from = slot.ref();
  const ItemRef to = log_.append(log_.queue_of(from), units);
  EGRET_CHECK(bool{to});
  debt_ += units;
  const Item& before = item(from);
  Item& it = item(to);
  it.lay_out(key.size(), static_cast<Bits>(bits & ~kPinned), before.inline_length(), before.version(),
             before.last_access());
  if (it.has(kHasExptime)) it.set_exptime(before.exptime());
  if (it.has(kHasFlags)) it.set_client_flags(before.client_flags());
  it.set_given_cas(before.given_cas());
  copy(copy(it.key_data(), named), before.inline_bytes());
  count_in(it);
  slot.set_ref(to);
  drop(from);
  return slot;
}

// --- Values

op::Result Store::replace_value(const op::Op& op, Slot old, Upload* upload, Bits marks) {
  // What only replaces a stale state keeps its time.
  const uint32_t deadline = (marks & kStale) != 0 ? item(old).exptime() : deadline_of(op.exptime);
  Draft draft{.key = op.key,
              .deadline = deadline,
              .client_flags = op.client_flags,
              .given_cas = given_cas_of(op),
              .marks = marks,
              .first = op.value};
  Pieces pieces(pages_);
  if (upload != nullptr) {
    pieces = upload->take_pieces();
    draft.pieces = &pieces;
  } else if (op.value.size() > kMaxInline) {
    pieces.expect(static_cast<uint32_t>(op.value.size()));
    if (!ensure_room(0, pieces.pages_needed(static_cast<uint32_t>(op.value.size())))) return no_room();
    pieces.write(op.value);
    debt_ += static_cast<uint32_t>(op.value.size() / kUnit);
    draft.pieces = &pieces;
  }
  old = index_.find(op.key, op.hash);
  if (old && overwrite(draft, old)) return stored(old.ref());
  const ItemRef ref = place(draft, op.hash);
  return ref ? stored(ref) : no_room();
}

// What has expired may be all that is in the way: it is looked for at once, and not at the next turn.
op::Result Store::no_room() {
  if (expiring_items_ > 0) sweep_second_ = 0;
  flush_sweep_second_ = 0;
  return answer(ResultCode::kOutOfMemory);
}

// Append and prepend keep flags and exptime. What does not fit is not stored, and the old value stays.
op::Result Store::extend_value(const op::Op& op, Slot old, Upload* upload) {
  const uint64_t added = upload != nullptr ? upload->total_length() : op.value.size();
  const uint64_t total = value_length(item(old)) + added;
  if (is_too_large(op.key, item(old).client_flags(), total)) return answer(ResultCode::kNotStored);
  if (upload != nullptr || total > kMaxInline || item(old).has(kLarge)) return extend_large(op, old, upload);
  const bool appends = op.mode == SetMode::kAppend;
  Item& before = item(old);
  const bool is_bare = !given_cas_of(op) && !before.has(kPinned | kHasCas);
  if (is_bare && Item::units_for(op.key.size(), before.bits(), total) == before.units()) {
    char* const value = before.inline_data();
    if (!appends) std::memmove(value + added, value, before.inline_length());
    copy(appends ? value + before.inline_length() : value, op.value);
    before.set_inline_length(total);
    before.set_version(version_++);
    before.clear_bits(kFetched | kStale | kTokenSent);
    ++counters_[StatId::kTotalItems];
    return stored(old.ref());
  }
  const uint32_t most = Item::units_for(op.key.size(), kLayoutBits, total);
  if (!ensure_room(most, 0)) return answer(ResultCode::kNotStored);
  old = index_.find(op.key, op.hash);
  if (!old) return answer(ResultCode::kNotStored);  // evicted to make room for what it was to become
  const std::string_view value = item(old).inline_bytes();
  const Draft draft{.key = op.key,
                    .deadline = item(old).exptime(),
                    .client_flags = item(old).client_flags(),
                    .given_cas = given_cas_of(op),
                    .first = appends ? value : op.value,
                    .second = appends ? op.value : value};
  const ItemRef ref = place(draft, op.hash);
  return ref ? stored(ref) : answer(ResultCode::kNotStored);
}

// The new list takes over the old item's pages and chunks: nothing is copied but what is added, and a tail. Only what
// somebody has pinned is copied, if it is not too much; else the reader has to start again.
op::Result Store::extend_large(const op::Op& op, Slot old, Upload* upload) {
  const auto added = static_cast<uint32_t>(upload != nullptr ? upload->total_length() : op.value.size());
  const size_t extents = (item(old).has(kLarge) ? large_head(item(old)).extents : 2) +
                         (upload != nullptr && added > kPageSize ? upload->extents() : added / kChunkSize) + 3;
  if (extents > kMaxExtents) return answer(ResultCode::kNotStored);
  const bool takes_over = item(old).has(kLarge) && (!item(old).has(kPinned) || value_length(item(old)) > kMostCopied);
  Pieces pieces(pages_);
  // What is put in front is a beginning by itself: it must not be given a page because of the length of what follows.
  const bool appends = op.mode == SetMode::kAppend;
  pieces.expect(appends ? value_length(item(old)) + added : added);
  // A record with the list and a tail; what is added; and chunks for the old value, or its tail.
  const uint32_t most =
      Item::units_for(op.key.size(), kLayoutBits, sizeof(LargeHead) + extents * sizeof(Extent) + kChunkSize);
  // A short upload is copied behind what is there: its own chunks would leave the one before them partly filled.
  const bool copies = upload == nullptr || (appends && added <= kPageSize);
  const uint32_t for_added = copies ? pieces.pages_needed(added) : 0;
  const uint32_t for_old = takes_over ? 1 : pieces.pages_needed(value_length(item(old)));
  if (!ensure_room(most, for_added + for_old)) return answer(ResultCode::kNotStored);
  old = index_.find(op.key, op.hash);
  if (!old) return answer(ResultCode::kNotStored);
  Item& before = item(old);
  const auto put_old = [&] {
    if (takes_over) {
      pieces.take_over(before);
      disown(old.ref());
      return;
    }
    const uint32_t length = value_length(before);
    for (uint32_t at = 0; at < length;) {
      const std::string_view piece = piece_at(pages_, before, at);
      pieces.write(piece);
      at += static_cast<uint32_t>(piece.size());
    }
    work_.bytes(length);
  };
  const auto put_added = [&] {
    if (!copies) return pieces.join(upload->take_pieces());
    if (upload != nullptr) {
      pieces.write(upload->take_pieces());
    } else {
      pieces.write(op.value);
    }
    debt_ += static_cast<uint32_t>(added / kUnit);
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
  EGRET_CHECK(bool{ref});  // there is room for it since before the old item was taken apart
  return stored(ref);
}

// The item's pages and chunks have gone over to another list; it is about to be replaced. Who has it pinned finds that
// its length is another.
void Store::disown(ItemRef ref) {
  Item& it = item(ref);
  count_out(it);
  const LargeHead head = large_head(it);
  log_.take_weight(ref, head.chunks * kChunkSize);
  const LargeHead nothing{};
  std::memcpy(it.inline_data(), &nothing, sizeof nothing);
  count_in(it);
}

}  // namespace egret::store
