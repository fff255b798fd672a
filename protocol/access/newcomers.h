// Chooses which connection to close when too many have not finished the handshake. Silent connections go first, and a peer
// with many connections loses its own before another peer loses any. One that has only just come is not closed for one that
// could wait in the system's queue: after a restart a thousand hosts come at once, and each would be closed before its hello
// could be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace egret::access {

inline constexpr size_t kMostNewcomers = 64;           // at once
inline constexpr size_t kMostNewcomersOfOnePeer = 32;  // the same, of one peer
// In so long a connection may not have had the time to send its hello.
inline constexpr uint64_t kNewcomerIsYoungNs = 10'000'000;

// A connection whose handshake is not finished.
struct Newcomer {
  uint64_t connection = 0;  // grows with every connection
  std::string_view peer;
  bool waits_for_us = false;  // a set-up thread has not made its queue pair yet: it counts for its peer's limit only
  bool is_young = false;      // it was accepted less than kNewcomerIsYoungNs ago, and was not refused
};

// If one peer has too many: its oldest. If there are too many in all: the oldest of the peer that has most. Else nothing.
std::optional<uint64_t> connection_to_end(std::span<const Newcomer> newcomers);
// Whether nobody should be accepted for now: one more could be too many, and connection_to_end() would name a young one. Further
// connections wait in the system's queue. Connections that stay silent delay others by kNewcomerIsYoungNs at most, kMostNewcomers
// of them at a time.
bool should_wait(std::span<const Newcomer> newcomers);

}  // namespace egret::access
