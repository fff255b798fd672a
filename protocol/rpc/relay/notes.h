// What an inbound lane has to remember of the ops whose results are still to come: how each is encoded, and whether its
// result comes from the backend or is known already. First in, first out.
//
// Thread: the worker's. Memory: grows to the most ops that were under way at once, and stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "op/op.h"

namespace egret::rpc::relay {

struct Note {
  enum class Kind : uint8_t {
    kAwaited,  // the backend answers it
    kCode,     // answered here, by `result`
    kPiece,    // answered here, by `length` bytes from `offset` of the kept value `kept` (Remainders)
  };
  Kind kind = Kind::kAwaited;
  op::OpCode code = op::OpCode::kPing;
  uint16_t options = 0;
  op::ResultCode result = op::ResultCode::kOk;
  uint32_t kept = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
};

class Notes {
 public:
  bool empty() const { return count_ == 0; }
  const Note& front() const { return notes_[first_]; }
  void push(const Note& note) {
    if (count_ == notes_.size()) grow();
    notes_[(first_ + count_++) & (notes_.size() - 1)] = note;
  }
  void pop() {
    EGRET_DCHECK(count_ > 0);
    first_ = (first_ + 1) & (notes_.size() - 1);
    --count_;
  }

 private:
  static constexpr size_t kLeast = 32;  // a power of two, as all sizes are

  void grow() {
    std::vector<Note> larger(notes_.empty() ? kLeast : 2 * notes_.size());
    for (size_t i = 0; i < count_; ++i) larger[i] = notes_[(first_ + i) & (notes_.size() - 1)];
    notes_.swap(larger);
    first_ = 0;
  }

  std::vector<Note> notes_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace egret::rpc::relay
