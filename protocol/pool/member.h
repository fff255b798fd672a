// A member of a pool: one backend, as an operator names it. "ADDRESS [weight=N] [name=NAME]" in the option `backends`,
// in a file of members, and in what a name service answers.
//
// Thread: any; values without state of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::pool {

inline constexpr size_t kMaxMembers = 1024;
inline constexpr uint32_t kMaxWeight = 1000;
inline constexpr size_t kMaxMemberName = 255;

struct Member {
  std::string address;  // transport/address.h
  std::string name;     // what placement hashes: unique in the pool
  uint32_t weight = 1;  // 1 to kMaxWeight

  // For people: "one (rdma:10.0.0.2:11311)", or only the address if the name follows from it.
  std::string to_string() const;
  bool operator==(const Member&) const = default;
};

// Whether both are one backend, with the same items: of one name, at one address. rdma:, tcp: and rdma+tcp: of one HOST:PORT are
// one address.
bool is_same_backend(const Member& one, const Member& other);
// Equal for one backend, and for no others: a key for maps.
std::string identity_of(const Member& member);

// Without name=: what follows the first colon of the address, IPv6 without its brackets.
base::Expected<Member> parse_member(std::string_view text);

// Reads the N of weight=N, 1 to kMaxWeight. False: it is none, and `weight` has no meaning.
bool parse_weight(std::string_view text, uint32_t& weight);

// Whether these can be the members of one pool: 1 to kMaxMembers, with names that placement can tell apart.
base::Status check_members(std::span<const Member> members);

}  // namespace egret::pool
