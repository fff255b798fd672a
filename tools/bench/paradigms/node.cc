#include "bench_paradigms/node.h"

#include <new>

#include <xxhash.h>

namespace egret::bench_paradigms {

Trouble& Trouble::operator+=(const Trouble& other) {
  retries += other.retries;
  vain += other.vain;
  stuck += other.stuck;
  reads += other.reads;
  messages += other.messages;
  wants += other.wants;
  return *this;
}

base::Status within_memory(const std::function<base::Status()>& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return base::Status::error("it wants more memory than this host gives");
  }
}

uint64_t hash_of(std::string_view key) {
  return XXH3_64bits(key.data(), key.size());
}

NodeId partition_of(const Plan& plan, std::string_view key) {
  // The upper half: stores take their places from the lower one.
  return static_cast<NodeId>((hash_of(key) >> 32) * plan.servers >> 32);
}

}  // namespace egret::bench_paradigms
