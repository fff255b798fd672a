// One hash serves all: XXH3-64 of the key, seeded per store. The partition comes from the high bits; the store takes
// bucket and tag from the others. Backends of a pool are chosen by ketama, apart from this hash.
#pragma once

#include <cstdint>
#include <string_view>

namespace egret::op {

// Thread: any. The seed comes from the backend (in the handshake), so a client of the system cannot aim at one bucket.
uint64_t hash_key(std::string_view key, uint64_t seed);

// Maps the hash's high 32 bits evenly onto 0..partitions-1.
inline uint32_t partition_of(uint64_t hash, uint32_t partitions) {
  return static_cast<uint32_t>(((hash >> 32) * partitions) >> 32);
}

}  // namespace egret::op
