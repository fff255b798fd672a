#include "op/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace egret::op {

uint64_t hash_key(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

}  // namespace egret::op
