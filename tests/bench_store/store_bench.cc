// What one op costs the store, in CPU time of one thread: `store-bench [ITEMS] [MEMORY_MIB]` (1,000,000 and 1024).
// 16-byte keys, 32-byte values, uniformly chosen; making the ops and hashing the keys is part of the figure. "raw" is
// the least that batched gets could cost here: two dependent random cache lines of a range as large as the items', and
// nothing else.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "op/hash.h"
#include "store/arena.h"
#include "store/store.h"

namespace {

using namespace egret;

constexpr size_t kKeyLength = 16;
constexpr size_t kValueLength = 32;
constexpr size_t kOps = 1u << 21;  // of one measurement
constexpr int kRounds = 3;         // the best counts
constexpr uint64_t kSeed = 99;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

uint64_t random_number() {
  static uint64_t state = 88172645463325252;
  state ^= state << 7;
  state ^= state >> 9;
  return state * 2685821657736338717u;
}

using Key = std::array<char, kKeyLength>;

Key key_of(uint64_t number) {
  Key key;
  number = (number + 1) * 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < kKeyLength; ++i) key[i] = "0123456789abcdef"[number >> (i * 4) & 15];
  return key;
}

class Bench {
 public:
  Bench(uint64_t items, uint64_t memory) : items_(items), memory_(memory), value_(kValueLength, 'v') {
    store::StoreConfig config;
    config.memory_limit = memory;
    config.hash_seed = kSeed;
    config.clock = &clock_;
    auto made = store::Store::create(config);
    if (!made) {
      std::fprintf(stderr, "store-bench: %s\n", made.message().c_str());
      std::exit(1);
    }
    store_ = std::move(made.value());
  }

  void fill() {
    const double start = cpu_seconds();
    for (uint64_t i = 0; i < items_; ++i) {
      const Key key = key_of(i);
      store_->execute_one(make(op::OpCode::kSet, key));
    }
    const auto held = static_cast<double>(store_->item_count());
    std::printf("%-28s %7.1f ns/op, %.0f items held, %.1f bytes each\n", "fill, unbatched",
                (cpu_seconds() - start) / static_cast<double>(items_) * 1e9, held,
                static_cast<double>(store_->memory_used()) / held);
    for (size_t i = 0; i < kOps; ++i) keys_.push_back(key_of(random_number() % items_));
  }

  void measure(size_t batch, bool prefetches, size_t sets_per_hundred) {
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) best = std::min(best, round_of(batch, prefetches, sets_per_hundred));
    std::printf("%3zu %% set, batch of %2zu%s %7.1f ns/op\n", sets_per_hundred, batch,
                prefetches ? "           " : ", unprefetched", best * 1e9);
  }

  void raw() {
    const uint64_t lines = std::min(memory_, items_ * 86) / 64;
    auto arena = store::Arena::reserve(lines * 64 + 4096);
    if (!arena) return;
    auto* words = reinterpret_cast<uint64_t*>(arena.value().data());
    for (uint64_t i = 0; i < lines; ++i) words[i * 8] = random_number() % lines * 8;
    std::vector<uint64_t> first(kOps);
    for (uint64_t& word : first) word = random_number() % lines * 8;
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const double start = cpu_seconds();
      for (size_t i = 0; i < kOps; i += store::kMaxBatch) {
        for (size_t j = i; j < i + store::kMaxBatch; ++j) __builtin_prefetch(words + first[j]);
        for (size_t j = i; j < i + store::kMaxBatch; ++j) __builtin_prefetch(words + words[first[j]]);
        for (size_t j = i; j < i + store::kMaxBatch; ++j) sum_ += words[words[first[j]]];
      }
      best = std::min(best, (cpu_seconds() - start) / kOps);
    }
    std::printf("%-28s %7.1f ns/op  (%llu)\n", "raw, batch of 32", best * 1e9, static_cast<unsigned long long>(sum_));
  }

 private:
  op::Op make(op::OpCode code, const Key& key) const {
    op::Op op;
    op.code = code;
    op.key = {key.data(), key.size()};
    op.hash = op::hash_key(op.key, kSeed);
    if (code == op::OpCode::kSet) op.value = value_;
    return op;
  }

  double round_of(size_t batch, bool prefetches, size_t sets_per_hundred) {
    std::array<op::Op, store::kMaxBatch> ops;
    char copy[kValueLength] = {};
    const double start = cpu_seconds();
    for (size_t i = 0; i < kOps; i += batch) {
      for (size_t j = 0; j < batch; ++j) {
        ops[j] = make((i + j) % 100 < sets_per_hundred ? op::OpCode::kSet : op::OpCode::kGet, keys_[i + j]);
      }
      if (prefetches) {
        store_->prepare({ops.data(), batch});
        store_->locate();
      }
      for (size_t j = 0; j < batch; ++j) {
        const op::Result result = prefetches ? store_->execute(j) : store_->execute_one(ops[j]);
        if (result.value.size() == kValueLength) std::memcpy(copy, result.value.data(), kValueLength);
        sum_ += static_cast<uint64_t>(copy[0]);
      }
    }
    return (cpu_seconds() - start) / kOps;
  }

  const uint64_t items_;
  const uint64_t memory_;
  const std::string value_;
  base::SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  std::vector<Key> keys_;
  uint64_t sum_ = 0;  // keeps what is read from being optimised away
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t items = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const uint64_t memory = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1024) << 20;
  if (items == 0) return 1;
  Bench bench(items, memory);
  bench.fill();
  for (const size_t sets : {0, 5, 50}) {
    for (const size_t batch : {32, 16, 8, 1}) bench.measure(batch, true, sets);
    bench.measure(32, false, sets);
  }
  bench.raw();
  return 0;
}
