// What one pair posts: collects Works for one doorbell, has one of so many signalled, and knows how many the device still
// holds. Works that find no room stay here until there is some.
//
//   add(work) ─▶ collected ─ at `doorbell` Works, or by flush() ─▶ Pair::post ─▶ completion ─▶ completed(tag)
#pragma once

#include <optional>
#include <vector>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

class Sender {
 public:
  struct Limits {
    uint32_t sends = 16;         // that the pair takes
    uint32_t most = 16;          // Works that may be collected
    uint32_t doorbell = 1;       // Works for which it posts by itself
    uint32_t signal_every = 64;  // 1: all
    uint32_t inline_bytes = 0;   // of the largest payload that goes inline; 0: none
  };
  // `index` tells the owner's senders apart. After the pair was made.
  void start(Pair& pair, uint32_t index, const Limits& limits);

  // False: too many are collected already. `user` comes back with the completion, and 0 asks for none.
  bool add(Work work, uint16_t user = 0);
  // False: the pair is broken.
  bool flush();
  // The user's number of a completion of this sender's.
  uint16_t completed(const Completion& completion);
  static uint32_t index_of(const Completion& completion) { return static_cast<uint32_t>(completion.tag >> 48); }

  // How many Works could be posted now.
  uint32_t room() const { return limits_.sends - (posted_ - freed_) - static_cast<uint32_t>(collected_.size()); }
  // Nothing is under way, as far as completions have told.
  bool is_idle() const { return posted_ == freed_ && collected_.empty(); }
  bool has_collected() const { return !collected_.empty(); }
  // Completions that can wait in the queue at once.
  static uint32_t completions(const Limits& limits) { return limits.sends / std::max(limits.signal_every, 1u) + 2; }

 private:
  Pair* pair_ = nullptr;
  uint32_t index_ = 0;
  Limits limits_;
  std::vector<Work> collected_;
  uint32_t posted_ = 0;  // Works, in all; wraps
  uint32_t freed_ = 0;   // of them, by completions
  uint32_t unsignalled_ = 0;
};

}  // namespace egret::bench_paradigms
