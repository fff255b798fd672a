// Limits how often each peer may connect and send handshake frames: each peer has a token bucket. A peer without tokens
// waits; other peers do not. Whoever holds many sessions may renew them all within some seconds: its bucket is larger by them.
// Thread: the control thread. Memory: bounded, however many peers there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace egret::access {

class HandshakeRate {
 public:
  static constexpr int64_t kBurst = 1024;     // tokens of a full bucket; a new one is full
  static constexpr int64_t kPerSecond = 512;  // tokens added per second
  // For each session that the peer holds, if that is more.
  static constexpr int64_t kBurstPerSession = 8;
  static constexpr int64_t kPerSecondPerSession = 4;
  static constexpr size_t kMostPeers = 4096;  // remembered; beyond that, those with most tokens are forgotten

  // Whether the peer has a token.
  bool may_go_on(const std::string& peer, uint64_t now_ns) { return bucket_of(peer, now_ns).tokens > 0; }
  // Takes so many tokens; the bucket may fall below zero.
  void charge(const std::string& peer, uint64_t now_ns, int64_t tokens) { bucket_of(peer, now_ns).tokens -= tokens; }
  // Every peer may have so many sessions, as an option says: each may renew as many at any time.
  void allow(uint64_t sessions) { allowed_ = static_cast<int64_t>(sessions); }
  // How many sessions it holds from now on.
  void holds(const std::string& peer, uint64_t now_ns, size_t sessions) {
    bucket_of(peer, now_ns).sessions = static_cast<int64_t>(sessions);
  }
  // What a session with so much memory costs.
  static int64_t cost_of_session(uint64_t bytes);
  size_t remembered() const { return buckets_.size(); }

 private:
  struct Bucket {
    int64_t tokens = kBurst;
    uint64_t filled_ns = 0;  // up to when
    int64_t sessions = 0;
  };

  Bucket& bucket_of(const std::string& peer, uint64_t now_ns);
  void fill(Bucket& bucket, uint64_t now_ns) const;
  int64_t burst_of(const Bucket& bucket) const;
  void forget_one(uint64_t now_ns);

  std::map<std::string, Bucket> buckets_;
  int64_t allowed_ = 0;
};

}  // namespace egret::access
