// Keeps the ops on one key in the order in which they were submitted, where their lane does not: a value that does not fit
// a slot takes several messages. As the proxy does for one of its connections:
//
//   a change waits for every unanswered get of its key, which may turn out to be of such a value
//   every op waits for a value of its key that is being fetched or sent in parts
//
// Keys are known by their hash. Pure; owned by an engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace egret::client {

class KeyOrder {
 public:
  // What get_begins() and get_ends() count, by some bits of the hash: 0: no such get is under way.
  uint32_t gets_like(uint64_t hash) const { return gets_[slot(hash)]; }
  void get_begins(uint64_t hash) { ++gets_[slot(hash)]; }
  void get_ends(uint64_t hash) { --gets_[slot(hash)]; }

  bool is_busy(uint64_t hash) const { return !busy_.empty() && std::ranges::find(busy_, hash) != busy_.end(); }
  void begin_parts(uint64_t hash) { busy_.push_back(hash); }
  void end_parts(uint64_t hash) {
    const auto at = std::ranges::find(busy_, hash);
    if (at == busy_.end()) return;
    *at = busy_.back();
    busy_.pop_back();
  }

 private:
  static constexpr size_t kSlots = 1024;
  static size_t slot(uint64_t hash) { return hash % kSlots; }

  std::array<uint32_t, kSlots> gets_{};  // max_pending may be more than 65,535
  std::vector<uint64_t> busy_;
};

}  // namespace egret::client
