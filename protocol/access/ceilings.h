// How many sessions there may be, and how much memory their slots may take, where the options leave it to the host; and what
// one peer may have of it, so that nobody takes everything:
//
//   what this process may have ─ ceilings_of ─▶ most sessions, most memory        each with its arithmetic, for people
//   of a total ─ share_of_peer ─▶ as much for one peer as stays free for the others
//
// Plain values and functions. Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace egret::access {

inline constexpr uint64_t kUnlimited = ~uint64_t{0};

// What this process may have, at most. kUnlimited: whatever it asks for, or it cannot be known.
struct Room {
  uint64_t descriptors = kUnlimited;
  uint64_t mappings = kUnlimited;  // of memory
  uint64_t memory = kUnlimited;    // bytes
  std::string memory_source{};     // whose: "this host's"
  uint64_t pinned = kUnlimited;    // bytes
};

// What it needs of that: for everything but sessions, and for each session.
struct Needs {
  uint64_t other_descriptors = 0, other_mappings = 0, other_memory = 0;
  uint64_t descriptors = 1, mappings = 0;  // of a session
  uint64_t least_bytes = 1;                // of its slots, while it is idle; at least 1
  uint64_t most_bytes = 0;                 // of its slots
  uint64_t queue_bytes = 0;                // pinned beside its slots
  bool is_pinned = false;                  // its slots
  std::string other_memory_text{};         // "memory 64MiB + 64MiB"
};

struct Ceiling {
  uint64_t value = 0;
  std::string arithmetic;  // "(65536 descriptors - 256) / 4"
};

// The memory of all sessions' slots: half of what is left of the room; of what may be pinned, all but the queues. At least
// kLeastSlotMemory, so that few sessions are possible everywhere.
Ceiling slot_memory_of(const Room& room, const Needs& needs);
inline constexpr uint64_t kLeastSlotMemory = uint64_t{64} << 20;

// As many sessions as there are descriptors, mappings and slot memory for, each as small as an idle one.
Ceiling most_sessions_of(const Room& room, const Needs& needs, uint64_t slot_memory);
inline constexpr uint64_t kMostSessions = 65536;

// The descriptors that go to rings of lanes, and are missing for sessions: a small part of all.
uint64_t lane_rings_of(const Room& room);

// How much of `total` a peer that has `own` may have, while all together have `taken`, `own` included: as much as then stays
// free for others, so that one alone has half, two a third each, and there is always something left; but never less than
// `floor`, as long as there is any. A total of kUnlimited has no limit.
uint64_t share_of_peer(uint64_t total, uint64_t taken, uint64_t own, uint64_t floor);
inline constexpr uint64_t kPlacesOfAnyPeer = 64;  // the floor for sessions; for memory: so many of the smallest

// The most that one session's slots may take, of all peers' `total`: the last quarter is for sessions of `least` bytes, so that
// busy sessions leave room for idle ones.
uint64_t room_of_session(uint64_t total, uint64_t taken, uint64_t least);

}  // namespace egret::access
