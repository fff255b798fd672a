#include "bench_store/subject.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench_store/keys.h"

namespace egret::bench_store {
namespace {

constexpr uint64_t kLeastMemory = 8u << 20;
constexpr uint64_t kPagesBegunOrFree = 1u << 20;

}  // namespace

uint64_t memory_for(uint64_t items, uint32_t value_size) {
  const uint64_t bytes = std::max(items * (kKeyLength + value_size + kOverhead), kLeastMemory) + kPagesBegunOrFree;
  return (bytes + (1u << 20) - 1) >> 20 << 20;
}

std::unique_ptr<store::Store> make_store(uint64_t memory, uint32_t item_size_max, const base::Clock& clock) {
  store::StoreConfig config;
  config.memory_limit = memory;
  config.item_size_max = item_size_max;
  config.hash_seed = kHashSeed;
  config.clock = &clock;
  auto made = store::Store::create(config);
  if (!made) {
    std::fprintf(stderr, "store-bench: %s\n", made.message().c_str());
    std::exit(1);
  }
  return std::move(made.value());
}

uint64_t Stats::operator[](op::StatId id) const {
  for (const op::StatRow& row : rows_) {
    if (row.id == static_cast<uint32_t>(id)) return row.value;
  }
  return 0;
}

}  // namespace egret::bench_store
