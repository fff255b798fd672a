// Incr and decr.
#include <algorithm>
#include <cstring>

#include "store/answer.h"
#include "store/number.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
// memcached keeps larger items in pieces, and takes no such item for a number.
constexpr uint64_t kMaxNumberItem = 512u << 10;
}  // namespace

op::Result Store::arith(const op::Op& op) {
  const bool decrements = (op.options & op::kDecrement) != 0;
  const ItemRef ref = find(op.key, op.hash);
  if (!ref) {
    if ((op.options & op::kCreate) != 0) return create_number(op);
    ++counters_[decrements ? StatId::kDecrMisses : StatId::kIncrMisses];
    return answer(ResultCode::kMiss);
  }
  const Item& it = item(ref);
  if (counted_size(op.key.size(), it.client_flags(), it.value_length) > kMaxNumberItem)
    return answer(ResultCode::kNonNumeric);
  if ((op.options & op::kCompareCas) != 0 && it.value_length != 0 && op.cas != cas_of(it.version))
    return answer(ResultCode::kExists);
  const std::optional<uint64_t> before = parse_number(it.value());
  if (!before) return answer(ResultCode::kNonNumeric);
  const uint64_t number = decrements ? *before - std::min(*before, op.delta) : *before + op.delta;
  ++counters_[decrements ? StatId::kDecrHits : StatId::kIncrHits];
  if (!write_number(op, ref, number)) return answer(ResultCode::kOutOfMemory);
  return number_result(number, version_ - 1);
}

op::Result Store::number_result(uint64_t number, uint64_t version) const {
  op::Result result = answer(ResultCode::kNumber);
  result.number = number;
  result.version = version;
  result.cas = cas_of(version);
  return result;
}

// A shorter number is padded with spaces: the value keeps its length.
bool Store::write_number(const op::Op& op, ItemRef ref, uint64_t number) {
  char buffer[kMaxDigits];
  const std::string_view digits = write_decimal(number, buffer);
  Item& before = item(ref);
  const size_t length = std::max<size_t>(digits.size(), before.value_length);
  ItemRef target = ref;
  if (before.pins != 0 || length > before.value_length) {
    target = make_item(op.key, before.has(kHasFlags), length, ref);
    if (!target) return false;
    const uint32_t flags = before.client_flags();
    if (before.has(kHasFlags)) std::memcpy(item(target).extra(), &flags, sizeof flags);
    item(target).exptime = before.exptime;
    item(target).set_bits(before.bits & kFrequency);
  }
  Item& it = item(target);
  std::memcpy(it.value_data(), digits.data(), digits.size());
  std::memset(it.value_data() + digits.size(), ' ', length - digits.size());
  it.version = version_++;
  if (target != ref) link(target, ref, op.hash);  // takes the old item's slot, so there is one
  return true;
}

op::Result Store::create_number(const op::Op& op) {
  char buffer[kMaxDigits];
  op::Op add = op;
  add.mode = op::SetMode::kSet;
  add.options = 0;
  add.client_flags = 0;
  add.value = write_decimal(op.initial, buffer);
  const op::Result result = replace_value(add, {}, nullptr);
  return result.code == ResultCode::kStored ? number_result(op.initial, result.version) : result;
}

}  // namespace egret::store
