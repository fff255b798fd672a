#include "bench_store/store_bench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench_store/table.h"

namespace egret::bench_store {
namespace {

using op::OpCode;
using op::ResultCode;
using op::StatId;

constexpr uint64_t kBlock = 1u << 13;  // ops between two looks at the CPU clock
constexpr uint64_t kFresh = 1u << 20;  // keys of one measurement of inserts
constexpr uint64_t kIndexBytes = 14;   // of an item, unless the store tells the size of its index
constexpr uint64_t kIndexPage = 64u << 10;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "store-bench: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace

StoreBench::StoreBench(uint64_t items, uint64_t memory, uint32_t value_size)
    : uniform_(draw_uniform(items)),
      zipf_(draw_zipf(items)),
      value_(value_size, ' '),
      response_(value_size),
      inserted_most_(items + memory / value_size) {
  value_.replace(0, 10, "1000000000");  // followed by spaces it is a number to memcached
  const MemoryMap before = MemoryMap::now();
  store_ = make_store(memory, 1u << 20, clock_);
  fill(items);
  pages_ = MemoryMap::now() - before;
  if (const Stats stats(*store_); stats[StatId::kEvictions] != 0 || store_->item_count() != items) {
    fail(std::to_string(memory >> 20) + " MiB hold only " + std::to_string(store_->item_count()) + " of " +
         std::to_string(items) + " items: give more --memory or fewer --items");
  }
}

double StoreBench::measure(const Case& each, double seconds) {
  const bool inserts = each.mix == Mix::kInsert;
  if (inserts) prepare_fresh(kFresh);
  const std::vector<KeyText>& keys = inserts ? fresh_ : each.zipf ? zipf_ : uniform_;
  uint64_t& at = inserts ? fresh_at_ : at_;
  const double ns = ns_per_op(seconds, [&]() -> uint64_t {
    if (at == keys.size()) return 0;
    for (uint64_t i = 0; i < kBlock; i += each.batch) run_pass(each, keys.data() + at + i);
    at += kBlock;
    if (!inserts) at %= keys.size();
    return kBlock * (each.mix == Mix::kReplace ? 2 : 1);
  });
  asm volatile("" : : "r"(sum_));
  return ns;
}

double StoreBench::measure_least(const RawLines& raw, double seconds) {
  const double ns = ns_per_op(seconds, [&] {
    for (uint64_t i = 0; i < kBlock; i += store::kMaxBatch) least_pass(raw, uniform_.data() + at_ + i);
    at_ = (at_ + kBlock) % uniform_.size();
    return kBlock;
  });
  asm volatile("" : : "r"(sum_));
  return ns;
}

void StoreBench::fill_up() {
  while (Stats(*store_)[StatId::kEvictions] == 0) {
    if (next_fresh_ > inserted_most_) fail("the store is full and does not evict");
    prepare_fresh(kBlock);
    insert_fresh();
  }
}

std::unique_ptr<RawLines> StoreBench::make_control() const {
  const uint64_t pages = Stats(*store_)[StatId::kIndexPages];
  const uint64_t index = pages != 0 ? pages * kIndexPage : store_->item_count() * kIndexBytes;
  return std::make_unique<RawLines>(index, store_->memory_used() - index);
}

std::vector<std::string> StoreBench::notes() const {
  const uint64_t items = store_->item_count();
  const uint64_t tenths = store_->memory_used() * 10 / items;
  return {std::to_string(items) + " items of 16 + " + std::to_string(value_.size()) + " B, " +
              std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " B each, all included; inserted at " +
              Cell(fill_ns_, 0).text() + " ns each, in batches of 32, while the store grew.",
          "The store: " + pages_.to_string() + "."};
}

void StoreBench::fill(uint64_t items) {
  double seconds = 0;
  while (next_fresh_ < items) {
    prepare_fresh(std::min(kBlock, items - next_fresh_));
    const double start = cpu_seconds();
    insert_fresh();
    seconds += cpu_seconds() - start;
  }
  fill_ns_ = seconds / static_cast<double>(items) * 1e9;
}

void StoreBench::prepare_fresh(uint64_t count) {
  fresh_.resize(count);
  for (KeyText& key : fresh_) key = key_text(next_fresh_++);
  fresh_at_ = 0;
}

void StoreBench::insert_fresh() {
  for (uint64_t i = 0; i < fresh_.size(); i += store::kMaxBatch) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(store::kMaxBatch, fresh_.size() - i));
    run_pass({"", Mix::kInsert, count}, fresh_.data() + i);
  }
}

// What the backend does between two polls: one begin_pass() and one batch, or two if it is more than a batch holds.
void StoreBench::run_pass(const Case& each, const KeyText* keys) {
  ops_since_clock_ += each.batch;
  if (ops_since_clock_ >= store::kMaxBatch) {  // a round of polls reads the clock once, whatever the batches are
    now_ns_ = clock_.now_ns();
    ops_since_clock_ = 0;
  }
  store_->begin_pass(now_ns_);
  for (uint32_t done = 0; done < each.batch; done += store::kMaxBatch) {
    run_batch(each, keys + done, static_cast<uint32_t>(std::min<size_t>(each.batch - done, store::kMaxBatch)));
  }
}

void StoreBench::run_batch(const Case& each, const KeyText* keys, uint32_t count) {
  switch (each.mix) {
    case Mix::kMakeOps:
      make_ops(OpCode::kGet, keys, count);
      for (uint32_t i = 0; i < count; ++i) sum_ += ops_[i].hash;
      return;
    case Mix::kGet:
      make_ops(OpCode::kGet, keys, count);
      break;
    case Mix::kGet95:
      make_ops(OpCode::kGet, keys, count);
      make_sets(count);
      break;
    case Mix::kSet:
    case Mix::kInsert:
      make_ops(OpCode::kSet, keys, count);
      break;
    case Mix::kReplace:
      make_ops(OpCode::kDelete, keys, count);
      execute(each.prefetches, count);
      make_ops(OpCode::kSet, keys, count);
      break;
    case Mix::kIncrement:
      make_ops(OpCode::kArith, keys, count);
      break;
  }
  execute(each.prefetches, count);
}

void StoreBench::least_pass(const RawLines& raw, const KeyText* keys) {
  std::array<const uint64_t*, store::kMaxBatch> lines;
  make_ops(OpCode::kGet, keys, store::kMaxBatch);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i] = raw.index_line(ops_[i].hash);
    __builtin_prefetch(lines[i]);
  }
  for (const uint64_t* line : lines) __builtin_prefetch(raw.item_line(line));
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* item = raw.item_line(lines[i]);
    sum_ += static_cast<uint64_t>(std::memcmp(item, ops_[i].key.data(), kKeyLength) != 0);
    std::memcpy(response_.data(), item + kKeyLength, std::min<size_t>(response_.size(), 64 - kKeyLength));
  }
  asm volatile("" : : "r"(response_.data()) : "memory");
}

void StoreBench::make_ops(OpCode code, const KeyText* keys, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ops_[i] = make_op(code, view(keys[i]));
    ops_[i].delta = 1;
    if (code == OpCode::kSet) ops_[i].value = value_;
  }
}

// One op in twenty becomes a set.
void StoreBench::make_sets(uint32_t count) {
  for (; until_set_ < count; until_set_ += 20) {
    ops_[until_set_].code = OpCode::kSet;
    ops_[until_set_].value = value_;
  }
  until_set_ -= count;
}

void StoreBench::execute(bool prefetches, uint32_t count) {
  if (prefetches) {
    store_->prepare({ops_.data(), count});
    store_->locate();
    for (uint32_t i = 0; i < count; ++i) take(ops_[i].code, store_->execute(i));
  } else {
    for (uint32_t i = 0; i < count; ++i) take(ops_[i].code, store_->execute_one(ops_[i]));
  }
}

// Copies a value as if into a response slot.
void StoreBench::take(OpCode code, const op::Result& result) {
  bool is_right = false;
  switch (code) {
    case OpCode::kGet:
      is_right = result.code == ResultCode::kHit && result.value.size() == response_.size();
      if (is_right) std::memcpy(response_.data(), result.value.data(), result.value.size());
      sum_ += static_cast<uint64_t>(response_[0]);
      break;
    case OpCode::kSet:
      is_right = result.code == ResultCode::kStored;
      break;
    case OpCode::kDelete:  // a key may be twice in a batch
      is_right = result.code == ResultCode::kDeleted || result.code == ResultCode::kMiss;
      break;
    default:
      is_right = result.code == ResultCode::kNumber;
  }
  if (!is_right) ++wrong_;
}

}  // namespace egret::bench_store
