// Values in parts (OpCode::kUpload) whose bytes a client receives where the store will keep them, without a slot between.
// For clients in the store's own thread.
//
//   a kUpload without bytes ─▶ begin_part(): room in the store ─▶ the client receives into it ─▶ end_part(): how much it was
//
// Parts that come so and parts that come as ops may follow each other: all must be in order. Thread: the store's, which is
// the client's; between the two calls nothing else of the store may be called.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "op/op.h"

namespace egret::op {

// Memory of the store, to be filled from the front.
struct PartRoom {
  static constexpr size_t kMostPieces = 24;
  std::array<std::span<char>, kMostPieces> pieces;
  size_t count = 0;
  uint32_t length = 0;  // bytes, of all pieces

  void add(std::span<char> piece) {
    pieces[count++] = piece;
    length += static_cast<uint32_t>(piece.size());
  }
  bool is_full() const { return count == kMostPieces; }
};

class DirectParts {
 public:
  // Room for the next bytes of the upload that `part` names, from part.offset on: at most `most`, perhaps fewer. An
  // offset of 0 opens the upload. False: send them as ops, which will also learn why; end_part() is not called then.
  virtual bool begin_part(const Op& part, uint32_t most, PartRoom& room) = 0;
  // `length` bytes of the room are filled, perhaps none. `part`: as before.
  virtual void end_part(const Op& part, uint32_t length) = 0;

 protected:
  ~DirectParts() = default;
};

}  // namespace egret::op
