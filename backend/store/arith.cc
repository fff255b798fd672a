// Incr and decr.
#include <algorithm>
#include <cstring>

#include "store/answer.h"
#include "store/number.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

op::Result Store::arith(const op::Op& op, Slot guess) {
  const bool decrements = (op.options & op::kDecrement) != 0;
  Slot slot = find(op.key, op.hash, guess);
  if (!slot) {
    if ((op.options & op::kCreate) != 0) return create_number(op);
    ++items_.counters[decrements ? StatId::kDecrMisses : StatId::kIncrMisses];
    return answer(ResultCode::kMiss);
  }
  const Item& it = items_.item(slot);
  const bool is_empty = !it.has(kLarge) && it.inline_length() == 0;  // non-numeric, even if the CAS does not match
  if ((op.options & op::kCompareCas) != 0 && !is_empty && op.cas != items_.cas_of(it))
    return answer(ResultCode::kExists);
  if (it.has(kLarge)) return answer(ResultCode::kNonNumeric);
  const std::optional<uint64_t> before = parse_number(it.inline_bytes());
  if (!before) return answer(ResultCode::kNonNumeric);
  const uint64_t number = decrements ? *before - std::min(*before, op.delta) : *before + op.delta;
  ++items_.counters[decrements ? StatId::kDecrHits : StatId::kIncrHits];
  slot.note_read();
  if (!write_number(op, slot, number)) return no_room();
  slot = items_.index.find(op.key, op.hash);
  op::Result result = number_result(number, items_.item(slot));
  if ((op.options & op::kWantMeta) != 0) result.ttl = ttl_of(items_.item(slot));
  if ((op.options & op::kTouch) != 0 && !touch(slot, op)) return no_room();
  if ((op.options & op::kNewTtl) != 0) result.ttl = ttl_of(items_.item(slot));
  return result;
}

op::Result Store::number_result(uint64_t number, const Item& item) const {
  op::Result result = answer(ResultCode::kNumber);
  result.number = number;
  result.version = item.version();
  result.cas = items_.cas_of(item);
  return result;
}

// As memcached: a shorter number is padded with spaces, so the value keeps its length, and the item's other fields
// stay. A number that needs more bytes becomes a new item, without the fetched, stale and token marks.
bool Store::write_number(const op::Op& op, Slot slot, uint64_t number) {
  char buffer[kMaxDigits];
  const std::string_view digits = write_decimal(number, buffer);
  const std::optional<uint64_t> given_cas = given_cas_of(op);
  Item& it = items_.item(slot);
  const size_t length = std::max<size_t>(digits.size(), it.inline_length());
  const bool fits = Item::units_for(op.key.size(), it.bits(), length) == it.units();
  const bool grows = digits.size() > it.inline_length();
  constexpr Bits kMarks = kStale | kTokenSent | kFetched;
  if (it.has(kPinned) || !fits || (given_cas && !it.has(kHasCas))) {
    const auto padding = it.inline_bytes().substr(std::min<size_t>(digits.size(), it.inline_length()));
    const std::string spaces(padding.size(), ' ');
    return bool{place({.key = op.key,
                       .deadline = it.exptime(),
                       .client_flags = it.client_flags(),
                       .given_cas = given_cas,
                       .marks = static_cast<Bits>(grows ? 0 : it.bits() & kMarks),
                       .first = digits,
                       .second = spaces},
                      op.hash)};
  }
  std::memcpy(it.inline_data(), digits.data(), digits.size());
  std::memset(it.inline_data() + digits.size(), ' ', length - digits.size());
  it.set_inline_length(length);
  if (grows) it.clear_bits(kMarks);
  it.set_version(items_.version++);
  it.set_given_cas(given_cas);
  return true;
}

op::Result Store::create_number(const op::Op& op) {
  char buffer[kMaxDigits];
  op::Op add = op;
  add.mode = op::SetMode::kSet;
  add.options = op.options & op::kExplicitCas;
  add.client_flags = 0;
  add.exptime = op.vivify_exptime;
  add.value = write_decimal(op.initial, buffer);
  const op::Result result = replace_value(add, Slot{}, nullptr, 0);
  if (result.code != ResultCode::kStored) return result;
  op::Result number = answer(ResultCode::kNumber);
  number.number = op.initial;
  number.version = result.version;
  number.cas = result.cas;
  number.marks = op::kCreated;
  const uint32_t deadline = deadline_of(op.vivify_exptime);
  if ((op.options & op::kWantMeta) != 0) number.ttl = deadline == 0 ? -1 : int64_t{deadline} - items_.now;
  return number;
}

}  // namespace egret::store
