#include "pool/ketama.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <utility>

// libmd, not OpenSSL: it is small, allocates nothing, cannot fail (not even in a FIPS-only configuration), and is in a
// client library, too.
#include <md5.h>
#include <sys/types.h>

#include "base/check.h"
#include "pool/member.h"

namespace egret::pool {

namespace {

constexpr std::string_view kDefaultPort = ":11211";
constexpr int kPointsPerServer = 160;
constexpr int kPointsPerDigest = 4;

using Digest = std::array<unsigned char, MD5_DIGEST_LENGTH>;

Digest md5(std::string_view text) {
  Digest digest;
  MD5_CTX context;
  ::MD5Init(&context);
  ::MD5Update(&context, reinterpret_cast<const uint8_t*>(text.data()), text.size());
  ::MD5Final(digest.data(), &context);
  return digest;
}

// A word of the digest, little-endian on every machine.
uint32_t word(const Digest& digest, size_t number) {
  const unsigned char* at = digest.data() + 4 * number;
  return at[0] | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}

// Single precision and this order of operations, as libmemcached: the result is rounded down, and for some numbers of
// equal servers it is just below 160 points.
size_t digests_of(uint32_t weight, uint64_t total_weight, size_t servers) {
  const float share = static_cast<float>(weight) / static_cast<float>(total_weight);
  const float digests = share * kPointsPerServer / kPointsPerDigest * static_cast<float>(servers) + 0.0000000001F;
  return static_cast<size_t>(std::floor(digests));
}

}  // namespace

std::string_view ketama_name(std::string_view name) {
  const bool has_default_port = name.size() > kDefaultPort.size() && name.ends_with(kDefaultPort);
  return has_default_port ? name.substr(0, name.size() - kDefaultPort.size()) : name;
}

KetamaRing::KetamaRing(std::span<const KetamaServer> servers) : server_count_(servers.size()) {
  EGRET_CHECK(servers.size() <= kMaxMembers);
  uint64_t total_weight = 0;
  for (const KetamaServer& server : servers) total_weight += server.weight;
  for (size_t number = 0; number < servers.size(); ++number) {
    const std::string prefix = std::string(ketama_name(servers[number].name)) + "-";
    const size_t digests = digests_of(servers[number].weight, total_weight, servers.size());
    for (size_t i = 0; i < digests; ++i) {
      const Digest digest = md5(prefix + std::to_string(i));
      for (size_t n = 0; n < kPointsPerDigest; ++n) points_.push_back({word(digest, n), static_cast<uint32_t>(number)});
    }
  }
  // As libmemcached: among equal values the server that was added first wins.
  std::ranges::sort(points_, {}, [](const Point& point) { return std::pair(point.value, point.server); });
  EGRET_CHECK(servers.empty() || !points_.empty());  // the heaviest server has at least an average share
}

size_t KetamaRing::points_of(size_t server) const {
  return static_cast<size_t>(std::ranges::count(points_, server, &Point::server));
}

std::vector<double> KetamaRing::shares() const {
  constexpr double kHashes = 4294967296.0;  // 2^32
  std::vector<uint64_t> owned(server_count_);
  uint64_t behind = 0;  // the first hash that is behind the last point
  for (const Point& point : points_) {
    if (point.value < behind) continue;  // a point of equal value is before it
    owned[point.server] += point.value + uint64_t{1} - behind;
    behind = point.value + uint64_t{1};
  }
  if (!points_.empty()) owned[points_.front().server] += (uint64_t{1} << 32) - behind;
  std::vector<double> shares;
  shares.reserve(owned.size());
  for (const uint64_t hashes : owned) shares.push_back(static_cast<double>(hashes) / kHashes);
  return shares;
}

size_t KetamaRing::next_point(std::string_view key) const {
  const auto next = std::ranges::lower_bound(points_, word(md5(key), 0), {}, &Point::value);
  return next != points_.end() ? static_cast<size_t>(next - points_.begin()) : 0;
}

KetamaRing::Place KetamaRing::place_of(std::string_view key) const {
  const Point& point = points_[next_point(key)];
  return {word(md5(key), 0), point.value, point.server};
}

size_t KetamaRing::order_of(std::string_view key, std::span<uint32_t> out) const {
  if (points_.empty()) return 0;
  std::bitset<kMaxMembers> seen;
  size_t found = 0;
  size_t at = next_point(key);
  for (size_t left = points_.size(); left > 0 && found < out.size(); --left) {
    const uint32_t server = points_[at].server;
    if (!seen[server]) out[found++] = server;
    seen.set(server);
    if (++at == points_.size()) at = 0;
  }
  return found;
}

}  // namespace egret::pool
