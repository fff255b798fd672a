// The lanes of one session that a pass must look at. A pass touches no other lane, so it costs nothing that a session
// has many.
//
//   append() to a lane ─▶ add() ─▶ every pass: operator[] ─▶ keep_if(): the lanes with nothing left to do go
//
// Owned by Lanes. Thread: the worker's. Memory: allocated when the session opens.
#pragma once

#include <cstdint>
#include <vector>

#include "rpc/active/work_listener.h"

namespace egret::rpc {

class ActiveLanes {
 public:
  // `listener` may be null. It hears of each lane that becomes active.
  explicit ActiveLanes(WorkListener* listener) : listener_(listener) {}

  // The session has so many lanes from now on; none is active.
  void open(uint32_t lanes) {
    numbers_.clear();
    numbers_.reserve(lanes);
    is_active_.assign(lanes, false);
  }
  void add(uint32_t lane) {
    if (is_active_[lane]) return;
    is_active_[lane] = true;
    numbers_.push_back(lane);
    if (listener_ != nullptr) listener_->on_work();
  }
  bool contains(uint32_t lane) const { return is_active_[lane]; }
  bool empty() const { return numbers_.empty(); }
  // A loop that calls waiters goes by position: they may make further lanes active, which come last.
  size_t size() const { return numbers_.size(); }
  uint32_t operator[](size_t position) const { return numbers_[position]; }
  auto begin() const { return numbers_.begin(); }
  auto end() const { return numbers_.end(); }
  template <typename Keep>
  void keep_if(Keep keep) {
    size_t kept = 0;
    for (const uint32_t lane : numbers_) {
      is_active_[lane] = keep(lane);
      if (is_active_[lane]) numbers_[kept++] = lane;
    }
    numbers_.resize(kept);
  }

 private:
  WorkListener* const listener_;
  std::vector<uint32_t> numbers_;
  std::vector<uint8_t> is_active_;  // by lane
};

}  // namespace egret::rpc
