// The bytes of a membership as one of its members sees it, and the number by which it is known. A proxy tells a backend
// so to which members it belongs (op::AdminVerb::kMember), and who owned which keys before.
//
//   0  1  rule: 0 ketama, 1 rendezvous
//   1  1  0
//   2  2  which member is meant, or 65535: none
//   4  2  members, 1 to 1024; then of each, in the order of their names:
//         2 weight, 1 length of the name, the name
//
// Little-endian. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "pool/member.h"
#include "pool/placement.h"

namespace egret::pool {

inline constexpr size_t kNoMember = SIZE_MAX;

// `mine`: the index of the member that is meant; kNoMember: none of them. The order of `members` makes no difference.
std::string encode_membership(PlacementRule rule, std::span<const Member> members, size_t mine);

// The number of a membership's bytes; never 0.
uint64_t number_of_membership(std::string_view bytes);

struct SeenMembership {
  Placement placement;
  size_t mine = kNoMember;  // in `placement`
};
// Trusts nobody.
base::Expected<SeenMembership> decode_membership(std::string_view bytes);

}  // namespace egret::pool
