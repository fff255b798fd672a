// How much of a response a result may take. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "op/op.h"
#include "wire/codec.h"

namespace egret::rpc {

// When a value is truncated so that later results fit, so many bytes of it are sent.
inline constexpr size_t kTruncatedValue = 4096;

// `left`: bytes of the slot that are free. `reserved`: of these, what the results behind this one take at least. A value
// that does not fit, or would leave too little to the results behind it, is truncated to kTruncatedValue.
inline size_t result_room(size_t left, size_t reserved, const op::Op& op, const op::Result& result) {
  const size_t room = left - reserved;
  const bool is_last = reserved == 0;
  if (is_last || op.code != op::OpCode::kGet || result.total_length <= kTruncatedValue) return room;
  const size_t least = wire::min_result_size(op);
  return least + result.total_length <= room / 2 ? room : std::min(room, least + kTruncatedValue);
}

}  // namespace egret::rpc
