// Get (with touch), Chunk and Delete.
#include <algorithm>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::StatId;

op::Result Store::hit(const Item& item, bool with_cas) const {
  op::Result result = answer(op::ResultCode::kHit);
  result.client_flags = item.client_flags();
  result.total_length = item.value_length;
  result.version = item.version;
  if (with_cas) result.cas = cas_of(item.version);
  return result;
}

// memcached counts a key of gat or touch as a touch, and only as that.
op::Result Store::get(const op::Op& op) {
  const bool touches = (op.options & op::kTouch) != 0;
  ++counters_[touches ? StatId::kCmdTouch : StatId::kCmdGet];
  const ItemRef ref = find(op.key, op.hash);
  if (!ref) {
    ++counters_[touches ? StatId::kTouchMisses : StatId::kGetMisses];
    return answer(op::ResultCode::kMiss);
  }
  ++counters_[touches ? StatId::kTouchHits : StatId::kGetHits];
  Item& it = item(ref);
  it.note_read();
  if (touches) it.exptime = deadline_of(op.exptime);
  op::Result result = hit(it, (op.options & op::kWantCas) != 0);
  if ((op.options & op::kNoValue) == 0) result.value = it.value();
  return result;
}

op::Result Store::chunk(const op::Op& op) const {
  const ItemRef ref = peek(op.key, op.hash);
  if (!ref || item(ref).version != op.version) return answer(op::ResultCode::kChanged);
  const Item& it = item(ref);
  if (op.offset > it.value_length) return answer(op::ResultCode::kInvalid);
  op::Result result = hit(it, true);
  result.value = it.value().substr(op.offset, op.length);
  return result;
}

op::Result Store::erase(const op::Op& op) {
  const ItemRef ref = find(op.key, op.hash);
  if (!ref) {
    ++counters_[StatId::kDeleteMisses];
    return answer(op::ResultCode::kMiss);
  }
  if ((op.options & op::kCompareCas) != 0 && op.cas != cas_of(item(ref).version))
    return answer(op::ResultCode::kExists);
  ++counters_[StatId::kDeleteHits];
  remove(ref, op.hash);
  return answer(op::ResultCode::kDeleted);
}

}  // namespace egret::store
