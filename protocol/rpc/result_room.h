// How much of a response a result may take. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "op/op.h"
#include "wire/codec.h"

namespace egret::rpc {

// When a value is truncated so that later results fit, so many bytes of it are sent.
inline constexpr size_t kTruncatedValue = 4096;

// Whether a result may be longer than the least that is reserved for it.
inline bool may_have_value(op::OpCode code) {
  using op::OpCode;
  return code == OpCode::kGet || code == OpCode::kChunk || code == OpCode::kStats || code == OpCode::kIterate ||
         code == OpCode::kAdmin;
}

// `left`: bytes of the slot that are free. `reserved`: of these, what the results behind this one take at least.
// `values_follow`: some of those may take more. Then a value that does not fit, or would leave too little to them, is
// truncated to kTruncatedValue.
inline size_t result_room(size_t left, size_t reserved, bool values_follow, const op::Op& op,
                          const op::Result& result) {
  const size_t room = left - reserved;
  if (!values_follow || op.code != op::OpCode::kGet || result.total_length <= kTruncatedValue) return room;
  const size_t least = wire::min_result_size(op);
  return least + result.total_length <= room / 2 ? room : std::min(room, least + kTruncatedValue);
}

}  // namespace egret::rpc
