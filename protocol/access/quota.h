// Whether a peer may have one more session, and how much memory its slots may take: the options' limits, or shares of what
// there is (ceilings.h) where they are `auto`. A refusal carries the arithmetic.
//
// Plain values and functions over a Ledger. Thread: any, one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "access/ceilings.h"
#include "access/ledger.h"

namespace egret::access {

struct Quota {
  // Of all peers together. The arithmetic is empty where an option says the number. Memory: kUnlimited, no limit.
  Ceiling sessions;
  Ceiling memory;
  // Of one peer. kUnlimited: no limit but those of all. kShare: its share of those.
  static constexpr uint64_t kShare = kUnlimited - 1;
  uint64_t sessions_of_peer = kShare;
  uint64_t memory_of_peer = kShare;
  uint64_t least_bytes = 1;  // of an idle session's slots
  uint64_t lane_rings = 0;   // descriptors for rings of lanes, beside those that a session has anyhow
};

// Empty, or why the peer cannot have one more session. Sessions of `worker` count for nothing: the new one replaces them.
std::string place_excess(const Quota& quota, const Ledger& ledger, uint64_t worker, const std::string& peer);

// The most bytes that the slots of the peer's next session should take: fewer slots fit in less. A limit that the option says
// is not counted here: a session is not made smaller for it, but refused (memory_excess).
uint64_t room_for_slots(const Quota& quota, const Ledger& ledger, const std::string& peer);

// Empty, or why the peer's next session cannot have so much memory.
std::string memory_excess(const Quota& quota, const Ledger& ledger, const std::string& peer, uint64_t bytes);

// Whether the peer's next session can have so many descriptors for rings of its lanes: some are left for other peers.
bool has_room_for_rings(const Quota& quota, const Ledger& ledger, const std::string& peer, uint64_t rings);

// How many sessions the options allow one peer; 0: they leave it to its share.
uint64_t sessions_told_of_peer(const Quota& quota);

// "16320 (auto: (65536 descriptors - 256) / 4)".
std::string to_string(const Ceiling& ceiling);

}  // namespace egret::access
