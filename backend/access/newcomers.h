// Chooses which connection to close when too many have not finished the handshake. Silent connections go first, and a peer
// with many connections loses its own before another peer loses any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace egret::access {

inline constexpr size_t kMostNewcomers = 64;           // at once
inline constexpr size_t kMostNewcomersOfOnePeer = 32;  // the same, of one peer

// A connection whose handshake is not finished.
struct Newcomer {
  uint64_t connection = 0;  // grows with every connection
  std::string_view peer;
  bool waits_for_us = false;  // a set-up thread has not made its queue pair yet: it counts for its peer's limit only
};

// If one peer has too many: its oldest. If there are too many in all: the oldest of the peer that has most. Else nothing.
std::optional<uint64_t> connection_to_end(std::span<const Newcomer> newcomers);

}  // namespace egret::access
