// Response slots that must not be used again yet, because somebody still reads the bytes of a result in them.
//
//   Waiter::on_result ─ SlotHold::add() (ClientLane::hold) ─ … the bytes are sent or copied ─ release()
//
// Move-only; releases when it is destroyed. If the session has been lost meanwhile there is nothing to release, and the
// bytes are void. Thread: the worker's.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "rpc/session_ref.h"

namespace egret::rpc {

class SlotHold {
 public:
  static constexpr size_t kMaxSlots = 9;  // what one large get may hold: its chunks in flight, and the one at hand

  SlotHold() = default;
  SlotHold(SlotHold&& other) noexcept { take(other); }
  SlotHold& operator=(SlotHold&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SlotHold() { release(); }

  bool empty() const { return count_ == 0; }
  bool is_full() const { return count_ == kMaxSlots; }

  // Within Waiter::on_result of a lane of `session`, with its result: the slot of the value stays. False: it cannot, or
  // there is no room here; the bytes must be copied. All slots of one hold are of the lane of `hash`.
  bool add(ClientSession& session, uint64_t hash, const op::Result& result) {
    if (is_full()) return false;
    const uint32_t held = session.lanes().of(hash).hold(result);
    if (held == 0) return false;
    session_ = SessionRef(session);
    generation_ = session.lanes().generation();
    hash_ = hash;
    slots_[count_++] = held;
    return true;
  }

  void release() {
    const size_t count = std::exchange(count_, 0);
    if (count == 0) return;
    const SessionRef session = std::move(session_);
    if (!session->is_open() || session->lanes().generation() != generation_) return;
    ClientLane& lane = session->lanes().of(hash_);
    for (size_t i = 0; i < count; ++i) lane.release(slots_[i]);
    session->credit().announce();
  }

 private:
  void take(SlotHold& other) {
    session_ = std::move(other.session_);
    generation_ = other.generation_;
    hash_ = other.hash_;
    slots_ = other.slots_;
    count_ = std::exchange(other.count_, 0);
  }

  SessionRef session_;
  uint64_t generation_ = 0;
  uint64_t hash_ = 0;
  std::array<uint32_t, kMaxSlots> slots_{};
  size_t count_ = 0;
};

}  // namespace egret::rpc
