// What a client knows of whether the server still polls its lane, over a network: the server says so, if it is asked to;
// else the client has learned after how long a pause the lane was found asleep. Pure. Thread: the lane's worker.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::rpc {

class LaneSleep {
 public:
  // The server said that the lane is asleep, and waits for this message.
  void told(uint64_t seq) { told_ = seq; }
  // Whether a message probably finds the lane asleep that is sent so long after the last answer.
  bool is_likely(uint64_t seq, uint64_t pause_ns) const { return told_ == seq || pause_ns >= sleeps_after_ns_; }
  // A message was answered that had found the lane asleep, or awake; sent after such a pause, or, 0, while others were
  // outstanding.
  void found(uint64_t pause_ns, bool asleep) {
    share_ += ((asleep ? kAll : 0) - share_) / kMemory;
    if (pause_ns == 0) return;
    if (asleep) {
      sleeps_after_ns_ = std::min(sleeps_after_ns_, pause_ns);
    } else if (pause_ns >= sleeps_after_ns_) {
      sleeps_after_ns_ = pause_ns + pause_ns / 8 + 1;
    }
  }

  // So seldom that being told of it, which costs the server a push, is cheaper than that each message rings.
  bool is_rare() const { return share_ < kAll / 32; }

 private:
  static constexpr int32_t kAll = 1 << 16;
  static constexpr int32_t kMemory = 64;  // messages

  uint64_t told_ = 0;                      // 0: nothing
  uint64_t sleeps_after_ns_ = UINT64_MAX;  // the shortest pause after which it slept
  int32_t share_ = 0;                      // of the messages that found it asleep
};

}  // namespace egret::rpc
