// Where the warm phase of a change of members stands: one immutable whole for all threads of a process.
//
//   kNone ─ keys go by the next membership ─▶ kFencing ─ every thread has taken it, and what was under way is answered ─▶
//   kOpen ─ its time is over ─▶ kNone
#pragma once

#include <cstdint>
#include <memory>

#include "pool/membership.h"

namespace egret::pool {

struct WarmPhase {
  enum class State : uint8_t { kNone, kFencing, kOpen };

  State state = State::kNone;
  uint64_t version = 0;                      // of the membership by which keys go since
  std::shared_ptr<const Membership> before;  // by which they went; not with kNone
  uint64_t lasts_ns = 0;

  // Whether that membership's keys may be anywhere in the one before: they have a member in common. Else the proxy was
  // pointed to another pool.
  static bool is_of_one_pool(const Membership& before, const Membership& now);
};

}  // namespace egret::pool
