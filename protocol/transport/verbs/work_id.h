// A work request's id: what it is, whose, on which of its queue pairs, and its position (a send) or buffer (a receive).
// Completions of many sessions come from one completion queue: the id says where each belongs, also that of a failed one,
// which has no opcode.
//
//   63  62 61      56 55                 24 23                 0
//   | kind |   pair   |   tag of the inbox  |      detail      |
#pragma once

#include <cstdint>

namespace egret::transport::verbs {

enum class WorkKind : uint8_t { kSend, kRead, kReceive };

inline constexpr uint64_t kDetailBits = 24;
inline constexpr uint64_t kDetailMask = (uint64_t{1} << kDetailBits) - 1;

// Of `detail` the lower bits are kept.
constexpr uint64_t work_id(WorkKind kind, uint32_t tag, uint32_t pair, uint64_t detail) {
  return uint64_t{static_cast<uint8_t>(kind)} << 62 | uint64_t{pair & 0x3f} << 56 | uint64_t{tag} << kDetailBits |
         (detail & kDetailMask);
}
constexpr WorkKind kind_of(uint64_t id) {
  return static_cast<WorkKind>(id >> 62);
}
constexpr uint32_t pair_index_of(uint64_t id) {
  return static_cast<uint32_t>(id >> 56) & 0x3f;
}
constexpr uint32_t tag_of(uint64_t id) {
  return static_cast<uint32_t>(id >> kDetailBits);
}
constexpr uint64_t detail_of(uint64_t id) {
  return id & kDetailMask;
}
// The position whose lower bits these are, and which is not before `from`, nor 2^24 or more behind it.
constexpr uint64_t position_of(uint64_t detail, uint64_t from) {
  return from + ((detail - from) & kDetailMask);
}

}  // namespace egret::transport::verbs
