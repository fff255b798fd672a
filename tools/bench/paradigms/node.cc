#include "bench_paradigms/node.h"

#include <xxhash.h>

namespace egret::bench_paradigms {

uint64_t hash_of(std::string_view key) {
  return XXH3_64bits(key.data(), key.size());
}

NodeId partition_of(const Plan& plan, std::string_view key) {
  // The upper half: stores take their places from the lower one.
  return static_cast<NodeId>((hash_of(key) >> 32) * plan.servers >> 32);
}

}  // namespace egret::bench_paradigms
