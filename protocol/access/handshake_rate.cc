#include "access/handshake_rate.h"

#include <algorithm>

namespace egret::access {

namespace {
constexpr uint64_t kNsPerToken = 1'000'000'000 / HandshakeRate::kPerSecond;
constexpr int64_t kDeepestDebt = 4 * HandshakeRate::kBurst;
}  // namespace

int64_t HandshakeRate::cost_of_session(uint64_t bytes) {
  return std::max<int64_t>(static_cast<int64_t>(bytes >> 20), 1);
}

HandshakeRate::Bucket& HandshakeRate::bucket_of(const std::string& peer, uint64_t now_ns) {
  auto at = buckets_.find(peer);
  if (at == buckets_.end()) {
    if (buckets_.size() >= kMostPeers) forget_one(now_ns);
    at = buckets_.emplace(peer, Bucket{.tokens = kBurst, .filled_ns = now_ns}).first;
  }
  fill(at->second, now_ns);
  return at->second;
}

void HandshakeRate::fill(Bucket& bucket, uint64_t now_ns) {
  const uint64_t earned = (now_ns - std::min(now_ns, bucket.filled_ns)) / kNsPerToken;
  bucket.filled_ns += earned * kNsPerToken;
  const auto most = static_cast<uint64_t>(kBurst + kDeepestDebt);
  bucket.tokens = std::max(bucket.tokens, -kDeepestDebt) + static_cast<int64_t>(std::min(earned, most));
  bucket.tokens = std::min(bucket.tokens, kBurst);
}

void HandshakeRate::forget_one(uint64_t now_ns) {
  for (auto& [peer, bucket] : buckets_) fill(bucket, now_ns);
  const auto fullest = std::ranges::max_element(buckets_, {}, [](const auto& entry) { return entry.second.tokens; });
  buckets_.erase(fullest);
}

}  // namespace egret::access
