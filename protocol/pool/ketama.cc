#include "pool/ketama.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

// MD5() instead of EVP: it has no state, allocates nothing and cannot fail, not even in a FIPS-only configuration.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>

#include "base/check.h"

namespace egret::pool {

namespace {

constexpr std::string_view kDefaultPort = ":11211";
constexpr int kPointsPerServer = 160;
constexpr int kPointsPerDigest = 4;

using Digest = std::array<unsigned char, MD5_DIGEST_LENGTH>;

Digest md5(std::string_view text) {
  Digest digest;
  ::MD5(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
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

size_t KetamaRing::find(std::string_view key) const {
  const auto next = std::ranges::lower_bound(points_, word(md5(key), 0), {}, &Point::value);
  return next != points_.end() ? next->server : points_.front().server;
}

}  // namespace egret::pool
