// The hash of a key: XXH3-64, with a seed of the backend. Its high bits choose the partition; the store takes bucket
// and tag from the other bits. Ketama, which chooses the backend, hashes the key by itself.
#pragma once

#include <cstdint>
#include <string_view>

namespace egret::op {

// Any thread. The seed is random, and the backend sends it in the handshake, so no client can aim at one bucket.
uint64_t hash_key(std::string_view key, uint64_t seed);

// Maps the high 32 bits of the hash evenly to 0 .. partitions - 1.
inline uint32_t partition_of(uint64_t hash, uint32_t partitions) {
  return static_cast<uint32_t>(((hash >> 32) * partitions) >> 32);
}

}  // namespace egret::op
