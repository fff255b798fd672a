// How an op travels to a member that stands in for the owner of its key: with the owner's tag, and with no time to live
// beyond a limit. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "op/op.h"
#include "pool/member.h"

namespace egret::pool {

struct GutterOptions {
  bool is_on = false;
  std::vector<Member> members;
  uint32_t ttl_s = 60;  // what they store expires after so many seconds at the latest
};

// The tag of ops in the place of the member with that name. Never 0. All proxies of a pool have the same.
uint64_t tag_of(std::string_view name);

// Marks an op that Pool::route() sends to one that stands in: `tag` is the route's. Exptimes are capped, whatever the
// client has asked for: none at all, seconds from now, or a Unix time, by the clock of this host.
void stand_in(op::Op& op, uint64_t tag, uint32_t ttl_s);

}  // namespace egret::pool
