// Short forms that all op families use.
#pragma once

#include <optional>

#include "op/op.h"

namespace egret::store {

inline op::Result answer(op::ResultCode code) {
  op::Result result;
  result.code = code;
  return result;
}

// The CAS that the client gives the item, if any.
inline std::optional<uint64_t> given_cas_of(const op::Op& op) {
  return (op.options & op::kExplicitCas) != 0 ? std::optional(op.new_cas) : std::nullopt;
}

}  // namespace egret::store
