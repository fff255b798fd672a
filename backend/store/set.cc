// Set in all its modes, and Commit, which is a set of an uploaded value.
#include <cstring>

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
bool is_plain_set(const op::Op& op) {
  return op.mode == SetMode::kSet && !compares(op);
}

void write_flags(Item& item, uint32_t client_flags) {
  if (item.has(kHasFlags)) std::memcpy(item.extra(), &client_flags, sizeof client_flags);
}

void copy(char* to, std::string_view from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}
}  // namespace

bool Store::is_too_large(std::string_view key, uint32_t client_flags, uint64_t value_length) const {
  return counted_size(key.size(), client_flags, value_length) > config_.item_size_max;
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
  // A client that believes in its set must not go on reading the value before it.
  if (is_plain_set(set)) {
    if (const ItemRef old = find(set.key, set.hash)) remove(old, set.hash);
  }
  return answer(why);
}

// memcached's table of modes, CAS and old item. Only a set or a replace with CAS counts as a cas.
op::Result Store::judge_and_store(const op::Op& op, Upload* upload) {
  const ItemRef old = find(op.key, op.hash);
  const bool is_cas = compares(op) && (op.mode == SetMode::kSet || op.mode == SetMode::kReplace);
  if (!old) {
    if (is_cas) {
      ++counters_[StatId::kCasMisses];
      return answer(ResultCode::kMiss);
    }
    if (op.mode != SetMode::kSet && op.mode != SetMode::kAdd) return answer(ResultCode::kNotStored);
    return replace_value(op, old, upload);
  }
  if (op.mode == SetMode::kAdd) {
    item(old).note_read();  // whoever wanted to add it has use for it
    return answer(ResultCode::kNotStored);
  }
  const bool matches = !compares(op) || op.cas == cas_of(item(old).version);
  if (is_cas) ++counters_[matches ? StatId::kCasHits : StatId::kCasBadval];
  if (!matches) return answer(ResultCode::kExists);
  if (!extends(op.mode)) return replace_value(op, old, upload);
  return extend_value(op, old, upload != nullptr ? item(upload->ref_).value() : op.value);
}

op::Result Store::stored(ItemRef ref) {
  op::Result result = answer(ResultCode::kStored);
  result.version = item(ref).version;
  result.cas = cas_of(result.version);
  return result;
}

ItemRef Store::make_item(std::string_view key, bool has_flags, uint64_t value_length, ItemRef keep) {
  const ItemRef ref = allocate(item_units(key.size(), has_flags, value_length), keep);
  if (!ref) return {};
  Item& it = item(ref);
  it.set_bits(has_flags ? kHasFlags : 0);
  it.key_length = static_cast<uint8_t>(key.size());
  it.pins = 0;
  it.version = 0;
  it.value_length = static_cast<uint32_t>(value_length);
  it.exptime = 0;
  write_flags(it, 0);
  copy(it.extra() + it.flags_size(), key);
  return ref;
}

op::Result Store::replace_value(const op::Op& op, ItemRef old, Upload* upload) {
  if (upload == nullptr && old && write_in_place(op, old)) return stored(old);
  ItemRef ref;
  if (upload != nullptr) {
    ref = upload->ref_;
  } else {
    ref = make_item(op.key, op.client_flags != 0, op.value.size(), old);
    if (!ref && old && is_plain_set(op)) {  // the old item would go anyway: use its room
      remove(old, op.hash);
      old = {};
      ref = make_item(op.key, op.client_flags != 0, op.value.size(), old);
    }
    if (!ref) return answer(ResultCode::kOutOfMemory);
    copy(item(ref).value_data(), op.value);
  }
  Item& it = item(ref);
  write_flags(it, op.client_flags);
  it.exptime = deadline_of(op.exptime);
  it.version = version_++;
  if (old) it.set_bits(item(old).bits & kFrequency);
  if (!link(ref, old, op.hash)) {
    if (upload == nullptr) heap_.release(ref);
    return answer(ResultCode::kOutOfMemory);
  }
  if (upload != nullptr) {
    upload_bytes_ -= it.units * kUnit;
    upload->store_ = nullptr;
  }
  return stored(ref);
}

// Without this, every overwrite would leave a hole for the hand to clear.
bool Store::write_in_place(const op::Op& op, ItemRef old) {
  Item& it = item(old);
  const bool has_flags = op.client_flags != 0;
  const uint32_t units = Heap::rounded(item_units(op.key.size(), has_flags, op.value.size()));
  if (it.pins != 0 || units > it.units) return false;
  counters_[StatId::kBytes] -= it.units * kUnit;
  heap_.shrink(old, units);
  counters_[StatId::kBytes] += it.units * kUnit;
  ++counters_[StatId::kTotalItems];
  it.clear_bits(kFetched | kHasFlags);
  it.set_bits(has_flags ? kHasFlags : 0);
  write_flags(it, op.client_flags);
  it.exptime = deadline_of(op.exptime);
  it.version = version_++;
  it.value_length = static_cast<uint32_t>(op.value.size());
  copy(it.extra() + it.flags_size(), op.key);
  copy(it.value_data(), op.value);
  return true;
}

// Append and prepend keep flags and exptime. What does not fit is not stored, and the old value stays.
op::Result Store::extend_value(const op::Op& op, ItemRef old, std::string_view added) {
  const Item& before = item(old);
  const uint64_t total = uint64_t{before.value_length} + added.size();
  if (is_too_large(op.key, before.client_flags(), total)) return answer(ResultCode::kNotStored);
  const bool appends = op.mode == SetMode::kAppend;
  if (before.pins == 0 && item_units(op.key.size(), before.has(kHasFlags), total) <= before.units) {
    Item& it = item(old);
    if (!appends) std::memmove(it.value_data() + added.size(), it.value_data(), it.value_length);
    copy(it.value_data() + (appends ? it.value_length : 0), added);
    it.value_length = static_cast<uint32_t>(total);
    it.version = version_++;
    it.clear_bits(kFetched);
    ++counters_[StatId::kTotalItems];
    return stored(old);
  }
  const ItemRef ref = make_item(op.key, before.has(kHasFlags), total, old);
  if (!ref) return answer(ResultCode::kNotStored);
  Item& it = item(ref);
  write_flags(it, before.client_flags());
  it.exptime = before.exptime;
  it.version = version_++;
  it.set_bits(before.bits & kFrequency);
  copy(it.value_data(), appends ? before.value() : added);
  copy(it.value_data() + (appends ? before.value_length : added.size()), appends ? added : before.value());
  link(ref, old, op.hash);  // takes the old item's slot, so there is one
  return stored(ref);
}

}  // namespace egret::store
