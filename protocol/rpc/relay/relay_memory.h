// Memory for values that are collected because the backend has no room for them yet. A user, who may have many sessions,
// gets half of it at most, or one value, however large. Who may not wait gets it in any case: a worker of this process has as
// much under way as its own limits allow, and what waits in a lane of its holds up what others wait for. Thread: the worker's.
#pragma once

#include <cstdint>
#include <map>

namespace egret::rpc::relay {

class RelayMemory {
 public:
  explicit RelayMemory(uint64_t limit) : limit_(limit) {}

  // `user`: LaneBinding::user.
  bool take(uint32_t user, uint64_t bytes, bool may_wait) {
    uint64_t& held = held_[user];
    const bool is_within_share = held == 0 || held + bytes <= limit_ / 2;
    const bool has_room = used_ == 0 || used_ + bytes <= limit_;
    if (may_wait && (!is_within_share || !has_room)) return false;
    held += bytes;
    used_ += bytes;
    return true;
  }
  void give(uint32_t user, uint64_t bytes) {
    held_[user] -= bytes;
    used_ -= bytes;
  }
  void set_limit(uint64_t limit) { limit_ = limit; }
  uint64_t used() const { return used_; }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
  std::map<uint32_t, uint64_t> held_;  // by user; users are few
};

}  // namespace egret::rpc::relay
