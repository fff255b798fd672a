// Chooses the backend of a key by libmemcached's weighted ketama, point for point, so that keys stay where a client
// with MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED put them.
//
//   backend ─▶ "name-0", "name-1", … ─ MD5 ─▶ four points each ─┐
//                                                               ├─▶ sorted ring; key ─ MD5 ─▶ next point ─▶ backend
//   weight  ─▶ how many points: 160 for the average weight ─────┘
//
// README.md has the rules and how other ketamas differ. Owns its points; immutable after construction: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace egret::pool {

struct KetamaServer {
  std::string name;
  uint32_t weight = 1;
};

// The part of a name that is hashed. As libmemcached, without memcached's default port: "host:11211" is "host".
std::string_view ketama_name(std::string_view name);

class KetamaRing {
 public:
  KetamaRing() = default;
  // `servers`: in the order of the pool, which decides only between points of equal value. Names are distinct, weights
  // are not 0.
  explicit KetamaRing(std::span<const KetamaServer> servers);

  // The index of the backend. A pool of one needs no hash.
  size_t server_of(std::string_view key) const { return server_count_ > 1 ? find(key) : 0; }
  // The owner of the key, then who owns it if the servers before are taken off the ring: the next points of different
  // servers. Fills `out` as far as there are servers with points, and returns how many it wrote.
  size_t order_of(std::string_view key, std::span<uint32_t> out) const;
  // 0: its weight is so small compared with the others that it gets no keys.
  size_t points_of(size_t server) const;
  // For each server the share of all hashes that it owns: the arcs that end at its points.
  std::vector<double> shares() const;

  // Where a key is on the ring, and the point that it belongs to.
  struct Place {
    uint32_t hash = 0;
    uint32_t point = 0;
    size_t server = 0;
  };
  Place place_of(std::string_view key) const;

 private:
  struct Point {
    uint32_t value;
    uint32_t server;
  };

  size_t find(std::string_view key) const { return points_[next_point(key)].server; }
  size_t next_point(std::string_view key) const;

  size_t server_count_ = 0;
  std::vector<Point> points_;
};

}  // namespace egret::pool
