// Which backend of a pool a key belongs to: libmemcached's weighted ketama, point for point, so that a pool's keys stay
// where a client with MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED put them.
//
//   backend ─▶ "name-0", "name-1", … ─ MD5 ─▶ four points each ─┐
//                                                               ├─▶ the ring, sorted; key ─ MD5 ─▶ the next point's
//                                                               backend
//   weight  ─▶ how many: 160 of an average backend ─────────────┘
//
// The rules, and where they differ from the other ketamas, are in README.md. Owns its points; built once, then only
// read: any thread.
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

// What is hashed of a name. libmemcached leaves out the port where it is memcached's own: "host:11211" is "host".
std::string_view ketama_name(std::string_view name);

class KetamaRing {
 public:
  KetamaRing() = default;
  // In the order of the pool, which decides only between points of the same value. Names are distinct, weights not 0.
  explicit KetamaRing(std::span<const KetamaServer> servers);

  // The number of the backend, from 0. A pool of one costs no hash.
  size_t server_of(std::string_view key) const { return server_count_ > 1 ? find(key) : 0; }
  // 0: its weight is so small beside the others' that no key is its own.
  size_t points_of(size_t server) const;

 private:
  struct Point {
    uint32_t value;
    uint32_t server;
  };

  size_t find(std::string_view key) const;

  size_t server_count_ = 0;
  std::vector<Point> points_;
};

}  // namespace egret::pool
