// The frames by which a proxy tells slot clients of this host who the members of its pool are. They travel over the
// socket on which it also makes sessions for them; the first frame says which of both a connection is for.
//
//   client                        proxy
//     ask      ───────────────▶
//              ◀───────────────  pool       a version, and how many members follow
//              ◀───────────────  member     index 0, 1, 2, …: the order of placement
//              ◀───────────────  state      of one member of that version; at any time
//              ◀───────────────  pool, …    another version
//
// A pool is in force when all of its members have come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "op/rights.h"

namespace egret::wire {

inline constexpr size_t kMaxPoolFrame = 1024;
inline constexpr size_t kMaxMemberText = 400;  // bytes of a name, and of an address
inline constexpr uint32_t kMaxPoolMembers = 1024;

struct Ask {
  uint64_t features = 0;
};

struct PoolHead {
  uint64_t features = 0;
  uint64_t version = 0;  // of the membership, from 1
  uint32_t members = 0;
  op::Rights rights = 0;       // of this client, in relayed sessions
  uint8_t placement = 0;       // pool::PlacementRule
  bool is_restricted = false;  // sessions are relayed only, since the proxy has rules that backends do not know
  uint32_t op_timeout_ms = 0;  // after which the proxy answers that an op is late
};

// How ops on a member's keys go. Values are wire format.
enum class MemberState : uint8_t {
  kServing = 0,
  kEjected = 1,   // nothing is sent to it: they fail
  kHeldBack = 2,  // the same, for a moment
};
inline constexpr uint8_t kMemberStates = 3;

// Bits: the ways by which a session with the member may be had.
enum MemberWays : uint8_t {
  kStraight = 1,           // by its address, without the proxy
  kByRelay = 2,            // by a hello to the proxy that names its tag
  kStraightOnRequest = 4,  // by its address, for clients of few threads that have what it takes: a device, the secret
};
inline constexpr uint8_t kAllMemberWays = 7;

struct MemberFrame {
  uint64_t version = 0;
  uint64_t tag = 0;  // wire::Hello::member
  uint32_t index = 0;
  uint32_t weight = 1;
  MemberState state = MemberState::kServing;
  uint8_t ways = 0;     // MemberWays
  std::string name;     // that placement hashes
  std::string address;  // transport/address.h
};

struct MemberStateFrame {
  uint64_t version = 0;
  uint32_t index = 0;
  MemberState state = MemberState::kServing;
};

std::vector<std::byte> encode(const Ask& ask);
std::vector<std::byte> encode(const PoolHead& pool);
// Longer texts than kMaxMemberText are cut.
std::vector<std::byte> encode(const MemberFrame& member);
std::vector<std::byte> encode(const MemberStateFrame& state);

// After decode_prefix() with kMaxPoolFrame. Each checks everything it reads; false when the frame is malformed.
bool decode(std::span<const std::byte> frame, Ask& ask);
bool decode(std::span<const std::byte> frame, PoolHead& pool);
bool decode(std::span<const std::byte> frame, MemberFrame& member);
bool decode(std::span<const std::byte> frame, MemberStateFrame& state);

}  // namespace egret::wire
