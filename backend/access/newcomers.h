// Which connection is ended when too many have not got through the handshake: those that say nothing take no place from
// those that do, and one peer's take none from another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace egret::access {

inline constexpr size_t kMostNewcomers = 64;           // at once
inline constexpr size_t kMostNewcomersOfOnePeer = 32;  // the same, of one peer

// A connection that is no session yet.
struct Newcomer {
  uint64_t connection = 0;  // grows with every connection
  std::string_view peer;
};

// Of one peer that has too many, its oldest. Of too many in all, the oldest of the peer that has most. Nothing: there
// are not too many.
std::optional<uint64_t> connection_to_end(std::span<const Newcomer> newcomers);

}  // namespace egret::access
