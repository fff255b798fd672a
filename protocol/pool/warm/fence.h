// Tells when every op that was appended to some sessions has been answered, without counting ops: a ping on each lane,
// whose answers come in the order of its ops.
//
//   start(sessions) ─▶ a ping on each lane ─ all answered, or their sessions are lost ─▶ is_over()
//
// An op whose session was lost, or that was not answered in time, has been answered to its client as a failure; a
// backend may execute it later all the same: then is_clean() is false.
// Thread: the worker's. Memory: a round is allocated by start(), and frees itself after its last answer.
#pragma once

#include <span>

#include "rpc/client_session.h"

namespace egret::pool {

class Fence final {
 public:
  Fence() = default;
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  // Asks each lane of those that are open. An earlier round is forgotten.
  void start(std::span<rpc::ClientSession* const> sessions);
  // Whether the round is over; also before the first.
  bool is_over() const { return round_ == nullptr; }
  // Whether each ping of the last round that is over was answered by its backend.
  bool is_clean() const { return is_clean_; }

 private:
  class Round;
  void forget();

  Round* round_ = nullptr;  // deletes itself
  bool is_clean_ = true;
};

}  // namespace egret::pool
