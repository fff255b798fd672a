// How a store is made, and the least and most memory that one can have.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "store/memory/layout.h"

namespace egret::store {

struct StoreConfig {
  uint64_t memory_limit =
      64u << 20;  // limit at the start, in bytes, index and overhead included; >= least_memory(item_size_max)
  uint32_t item_size_max = 1u << 20;   // as memcached counts an item (op::memcached_item_size)
  bool evict = true;                   // false: answer kOutOfMemory when full, like memcached -M
  uint64_t hash_seed = 0;              // every op's hash must be op::hash_key(key, hash_seed)
  const base::Clock* clock = nullptr;  // outlives the store
  // The n-th change (n = first_version, first_version + 1, ...) gets internal version n and CAS n × cas_stride +
  // cas_offset: partition p of N takes stride N and offset p, so that no two items of a backend share a CAS. cas_offset
  // < cas_stride.
  uint64_t first_version = 1;
  uint64_t cas_stride = 1;
  uint64_t cas_offset = 0;
  bool populate = false;  // make all memory resident before serving
  // The file (on tmpfs or hugetlbfs) that keeps the store across a restart; empty: none. See warm.cc.
  std::string warm_path = {};
};

inline constexpr uint64_t kMinMemory = 1u << 20;
inline constexpr uint64_t kMaxMemory = kPageSize * kMaxPages;
// The smallest memory limit, in bytes, for a store whose items have up to this size.
uint64_t least_memory(uint32_t item_size_max);

}  // namespace egret::store
