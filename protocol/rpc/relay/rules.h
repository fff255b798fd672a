// What the ops of an inbound session may do. The relay refuses the others itself, since the backend knows only the
// relay's own session. A value; immutable while a session has it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "op/op.h"
#include "op/rights.h"

namespace egret::rpc::relay {

struct Rules {
  op::Rights rights = op::kAllRights;
  std::vector<std::string> prefixes{};  // of keys; none: every key
  bool may_stand_in = false;            // ops with an owner tag: only proxies send such

  bool operator==(const Rules&) const = default;

  // kOk: it may.
  op::ResultCode judge(const op::Op& op) const {
    const bool is_known = op.code >= op::OpCode::kGet && op.code <= op::OpCode::kPing;
    if (!is_known) return op::ResultCode::kUnsupported;  // the backend may know it, and we not what it does
    if ((op::rights_for(op) & ~rights) != 0) return op::ResultCode::kForbidden;
    if (op.owner != 0 && !may_stand_in) return op::ResultCode::kForbidden;
    if (prefixes.empty() || !op::has_key(op.code)) return op::ResultCode::kOk;
    const bool is_theirs =
        std::ranges::any_of(prefixes, [&](const std::string& prefix) { return op.key.starts_with(prefix); });
    return is_theirs ? op::ResultCode::kOk : op::ResultCode::kForbidden;
  }
};

}  // namespace egret::rpc::relay
