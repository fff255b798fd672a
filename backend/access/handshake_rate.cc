#include "access/handshake_rate.h"

#include <algorithm>

namespace egret::access {

namespace {
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kLongestNs = 3600 * kNsPerSecond;  // after which every bucket is full
constexpr int64_t kDeepestDebt = 4 * HandshakeRate::kBurst;
}  // namespace

int64_t HandshakeRate::cost_of_session(uint64_t bytes) {
  return std::max<int64_t>(static_cast<int64_t>(bytes >> 20), 1);
}

HandshakeRate::Bucket& HandshakeRate::bucket_of(const std::string& peer, uint64_t now_ns) {
  auto at = buckets_.find(peer);
  if (at == buckets_.end()) {
    if (buckets_.size() >= kMostPeers) forget_one(now_ns);
    at = buckets_.emplace(peer, Bucket{.tokens = burst_of({}), .filled_ns = now_ns}).first;
  }
  fill(at->second, now_ns);
  return at->second;
}

int64_t HandshakeRate::burst_of(const Bucket& bucket) const {
  return std::max(kBurst, kBurstPerSession * std::max(bucket.sessions, allowed_));
}

void HandshakeRate::fill(Bucket& bucket, uint64_t now_ns) const {
  const int64_t burst = burst_of(bucket);
  const int64_t sessions = std::max(bucket.sessions, allowed_);
  const auto per_second = static_cast<uint64_t>(std::max(kPerSecond, kPerSecondPerSession * sessions));
  if (now_ns > bucket.filled_ns + kLongestNs) bucket.filled_ns = now_ns - kLongestNs;
  const uint64_t earned = (now_ns - std::min(now_ns, bucket.filled_ns)) * per_second / kNsPerSecond;
  bucket.filled_ns += earned * kNsPerSecond / per_second;
  const auto most = static_cast<uint64_t>(burst + kDeepestDebt);
  bucket.tokens = std::max(bucket.tokens, -kDeepestDebt) + static_cast<int64_t>(std::min(earned, most));
  bucket.tokens = std::min(bucket.tokens, burst);
}

void HandshakeRate::forget_one(uint64_t now_ns) {
  for (auto& [peer, bucket] : buckets_) fill(bucket, now_ns);
  const auto fullest = std::ranges::max_element(buckets_, {}, [](const auto& entry) { return entry.second.tokens; });
  buckets_.erase(fullest);
}

}  // namespace egret::access
