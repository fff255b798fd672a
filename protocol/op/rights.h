// What a session may do with a backend's items. The backend grants rights to each session and refuses every op that
// needs another (kForbidden); the grant tells them to the client. Values are wire format: never renumber.
#pragma once

#include <cstdint>
#include <string>

#include "op/op.h"
#include "op/records.h"

namespace egret::op {

using Rights = uint32_t;
inline constexpr Rights kMayRead = 1 << 0;
inline constexpr Rights kMayWrite = 1 << 1;
inline constexpr Rights kMayFlush = 1 << 2;   // flush_all, and to say that the members of the pool change
inline constexpr Rights kMayDump = 1 << 3;    // list keys, of items and of evicted ones
inline constexpr Rights kMayLimits = 1 << 4;  // the admin verbs: memory limit, statistics to zero, and those for tests
inline constexpr Rights kAllRights = (1 << 5) - 1;

// Whether an admin op tells the backend that the members of its pool change, after which it removes items.
constexpr bool is_about_members(const Op& op) {
  return op.group == static_cast<uint8_t>(AdminVerb::kWarm) || op.group == static_cast<uint8_t>(AdminVerb::kMember);
}

constexpr Rights rights_for_code(const Op& op);

// What an op needs. Statistics, ping, and what this version does not know need nothing. An op in the place of another
// owner may have all items of that owner removed.
constexpr Rights rights_for(const Op& op) {
  return rights_for_code(op) | (op.owner != 0 ? kMayFlush : 0);
}

constexpr Rights rights_for_code(const Op& op) {
  switch (op.code) {
    case OpCode::kGet:
      return kMayRead | ((op.options & (kTouch | kVivify | kRecache)) != 0 ? kMayWrite : 0);
    case OpCode::kChunk:
      return kMayRead;
    case OpCode::kArith:
      return kMayRead | kMayWrite;
    case OpCode::kSet:
    case OpCode::kDelete:
    case OpCode::kUpload:
    case OpCode::kCommit:
    case OpCode::kAbort:
      return kMayWrite;
    case OpCode::kFlush:
      return kMayFlush;
    case OpCode::kIterate:
      return kMayDump | (op.group == static_cast<uint8_t>(RecordSource::kChanged) ? kMayFlush : 0);
    case OpCode::kAdmin:
      return is_about_members(op) ? kMayFlush : kMayLimits;
    case OpCode::kStats:
    case OpCode::kPing:
      break;
  }
  return 0;
}

// "read+write", "all", "none".
std::string to_string(Rights rights);
// The opposite; false: a word is unknown.
bool parse_rights(std::string_view text, Rights& rights);

}  // namespace egret::op
