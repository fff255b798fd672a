// Whether an executed op may have changed or removed its key's item, or was to remove it: what has been read of the key
// elsewhere before is not its value any more. Pure functions.
#pragma once

#include "op/op.h"

namespace egret::backend {

// A fill counts as no change. A delete counts also when there was nothing: the one who sent it means the key. A set that
// was refused for want of room may have removed the item.
inline bool may_change(const op::Op& op, const op::Result& result) {
  using op::ResultCode;
  switch (op.code) {
    case op::OpCode::kGet:
      return (op.options & (op::kTouch | op::kVivify)) != 0 && result.code != ResultCode::kMiss;
    case op::OpCode::kSet:
    case op::OpCode::kCommit:
      return op.mode != op::SetMode::kFill &&
             (result.code == ResultCode::kStored || result.code == ResultCode::kTooLarge ||
              result.code == ResultCode::kOutOfMemory);
    case op::OpCode::kDelete:
      return result.code == ResultCode::kDeleted || result.code == ResultCode::kMiss ||
             result.code == ResultCode::kOutOfMemory;
    case op::OpCode::kArith:
      return result.code == ResultCode::kNumber || result.code == ResultCode::kOutOfMemory;
    default:
      return false;
  }
}

// Of all keys.
inline bool changes_all(const op::Op& op, const op::Result& result) {
  return op.code == op::OpCode::kFlush && result.code == op::ResultCode::kOk;
}

}  // namespace egret::backend
