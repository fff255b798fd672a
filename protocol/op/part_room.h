// Room for the next bytes of a value that comes in parts, to be filled from the front: memory of the store (direct_store.h), or of
// the request slots that the parts go by (rpc/client_lane.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace egret::op {

struct PartRoom {
  static constexpr size_t kMostPieces = 24;
  std::array<std::span<char>, kMostPieces> pieces;
  size_t count = 0;
  uint32_t length = 0;  // bytes, of all pieces
  uint32_t least = 0;   // bytes; with fewer, fill nothing: they are not worth a message of their own

  void add(std::span<char> piece) {
    pieces[count++] = piece;
    length += static_cast<uint32_t>(piece.size());
  }
  bool is_full() const { return count == kMostPieces; }
};

}  // namespace egret::op
