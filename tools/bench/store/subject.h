// What all modes share: creating a store, making ops for it, reading its counters.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "op/hash.h"
#include "op/op.h"
#include "op/stats.h"
#include "store/store.h"

namespace egret::bench_store {

inline constexpr uint64_t kHashSeed = 4711;

// Bytes of a store for so many items with keys of 16 bytes, and about 10 % more.
inline constexpr uint64_t kOverhead = 48;  // for each item, beyond its key and value
uint64_t memory_for(uint64_t items, uint32_t value_size);

// Ends the process with a message when there is no such store. The clock must outlive it.
std::unique_ptr<store::Store> make_store(uint64_t memory, uint32_t item_size_max, const base::Clock& clock);

inline op::Op make_op(op::OpCode code, std::string_view key) {
  op::Op op;
  op.code = code;
  op.key = key;
  op.hash = op::hash_key(key, kHashSeed);
  return op;
}

// The store's counters at one moment. A counter that the store does not tell is 0.
class Stats {
 public:
  explicit Stats(const store::Store& store) { store.append_stats(op::StatGroup::kGeneral, rows_); }
  uint64_t operator[](op::StatId id) const;

 private:
  std::vector<op::StatRow> rows_;
};

}  // namespace egret::bench_store
