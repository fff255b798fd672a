#include "bench_store/store_bench.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench_store/table.h"

namespace egret::bench_store {
namespace {

using op::OpCode;
using op::ResultCode;
using op::StatId;

constexpr uint64_t kBlock = 1u << 11;  // ops prepared at a time, and between two reads of the CPU clock
constexpr double kForEver = 1e9;       // s
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
  if (const Stats stats(*store_); stats[StatId::kEvictions] != 0 || store_->counts().items != items) {
    fail(std::to_string(memory >> 20) + " MiB hold only " + std::to_string(store_->counts().items) + " of " +
         std::to_string(items) + " items: give more --memory or fewer --items");
  }
}

double StoreBench::measure(const Case& each, double seconds) {
  const bool inserts = each.mix == Mix::kInsert;
  if (inserts) draw_fresh(kFresh);
  const std::vector<KeyText>& keys = inserts ? fresh_ : each.zipf ? zipf_ : uniform_;
  uint64_t fresh_at = 0;
  uint64_t& at = inserts ? fresh_at : at_;
  const auto draw = [&]() -> uint64_t {
    if (at == keys.size()) {
      if (inserts) return 0;
      at = 0;
    }
    make_ops(each, std::span(keys).subspan(at, kBlock));
    at += kBlock;
    return ops_.size();
  };
  const double ns = ns_per_op(seconds, draw, [&] { run_ops(each); });
  asm volatile("" : : "r"(sum_));
  return ns;
}

double StoreBench::measure_least(const RawLines& raw, double seconds) {
  const auto draw = [&] {
    at_ = (at_ + kBlock) % uniform_.size();
    make_ops({"", Mix::kGet, store::kMaxBatch}, std::span(uniform_).subspan(at_, kBlock));
    return ops_.size();
  };
  const double ns = ns_per_op(seconds, draw, [&] {
    for (uint64_t i = 0; i < kBlock; i += store::kMaxBatch)
      least_batch(raw, std::span(ops_).subspan(i, store::kMaxBatch));
  });
  asm volatile("" : : "r"(sum_));
  return ns;
}

void StoreBench::fill_up() {
  const Case insert{"", Mix::kInsert, store::kMaxBatch};
  while (Stats(*store_)[StatId::kEvictions] == 0) {
    if (next_fresh_ > inserted_most_) fail("the store is full and does not evict");
    draw_fresh(kBlock);
    make_ops(insert, fresh_);
    run_ops(insert);
  }
}

std::unique_ptr<RawLines> StoreBench::make_control() const {
  const uint64_t pages = Stats(*store_)[StatId::kIndexPages];
  const uint64_t index = pages != 0 ? pages * kIndexPage : store_->counts().items * kIndexBytes;
  return std::make_unique<RawLines>(index, store_->memory().used - index);
}

std::vector<std::string> StoreBench::notes() const {
  const uint64_t items = store_->counts().items;
  const uint64_t tenths = store_->memory().used * 10 / items;
  return {std::to_string(items) + " items of 16 + " + std::to_string(value_.size()) + " B, " +
              std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " B each, all included; inserted at " +
              Cell(fill_ns_, 0).text() + " ns each, in batches of 32, while the store grew.",
          "The store: " + pages_.to_string() + "."};
}

void StoreBench::fill(uint64_t items) {
  const Case insert{"", Mix::kInsert, store::kMaxBatch};
  const auto draw = [&] {
    draw_fresh(std::min(kBlock, items - next_fresh_));
    make_ops(insert, fresh_);
    return ops_.size();
  };
  fill_ns_ = ns_per_op(kForEver, draw, [&] { run_ops(insert); });
}

void StoreBench::draw_fresh(uint64_t count) {
  fresh_.resize(count);
  for (KeyText& key : fresh_) key = key_text(next_fresh_++);
}

void StoreBench::make_ops(const Case& each, std::span<const KeyText> keys) {
  ops_.clear();
  switch (each.mix) {
    case Mix::kHash:
    case Mix::kGet:
      return add_ops(OpCode::kGet, keys);
    case Mix::kGet95:
      add_ops(OpCode::kGet, keys);
      return make_sets();
    case Mix::kSet:
    case Mix::kInsert:
      return add_ops(OpCode::kSet, keys);
    case Mix::kIncrement:
      return add_ops(OpCode::kArith, keys);
    case Mix::kReplace:
      for (; !keys.empty(); keys = keys.subspan(each.batch)) {
        add_ops(OpCode::kDelete, keys.first(each.batch));
        add_ops(OpCode::kSet, keys.first(each.batch));
      }
  }
}

void StoreBench::add_ops(OpCode code, std::span<const KeyText> keys) {
  for (const KeyText& key : keys) {
    op::Op& op = ops_.emplace_back();
    op.code = code;
    op.key = view(key);
    op.delta = 1;
    if (code == OpCode::kSet) op.value = value_;
  }
}

// One op in twenty becomes a set.
void StoreBench::make_sets() {
  for (; until_set_ < ops_.size(); until_set_ += 20) {
    ops_[until_set_].code = OpCode::kSet;
    ops_[until_set_].value = value_;
  }
  until_set_ -= ops_.size();
}

// The backend's work between two polls: one begin_pass() and one batch, or two if there are more ops than fit a batch.
void StoreBench::run_ops(const Case& each) {
  const std::span<op::Op> ops(ops_);
  for (size_t at = 0; at < ops.size(); at += each.batch) {
    const auto pass = ops.subspan(at, std::min<size_t>(each.batch, ops.size() - at));
    ops_since_clock_ += each.batch;
    if (ops_since_clock_ >= store::kMaxBatch) {  // a round of polls reads the clock once
      now_ns_ = clock_.now_ns();
      ops_since_clock_ = 0;
    }
    store_->begin_pass(now_ns_);
    for (size_t done = 0; done < pass.size(); done += store::kMaxBatch)
      run_batch(each, pass.subspan(done, std::min(pass.size() - done, store::kMaxBatch)));
  }
}

void StoreBench::run_batch(const Case& each, std::span<op::Op> ops) {
  for (op::Op& op : ops) op.hash = op::hash_key(op.key, kHashSeed);
  if (each.mix == Mix::kHash) {
    for (const op::Op& op : ops) sum_ += op.hash;
  } else if (each.prefetches) {
    store_->prepare(ops);
    store_->locate();
    for (size_t i = 0; i < ops.size(); ++i) take(ops[i].code, store_->execute(i));
  } else {
    for (const op::Op& op : ops) take(op.code, execute_one(*store_, op));
  }
}

void StoreBench::least_batch(const RawLines& raw, std::span<op::Op> ops) {
  std::array<const uint64_t*, store::kMaxBatch> lines;
  for (op::Op& op : ops) op.hash = op::hash_key(op.key, kHashSeed);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i] = raw.index_line(ops[i].hash);
    __builtin_prefetch(lines[i]);
  }
  for (const uint64_t* line : lines) __builtin_prefetch(raw.item_line(line));
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* item = raw.item_line(lines[i]);
    sum_ += static_cast<uint64_t>(std::memcmp(item, ops[i].key.data(), kKeyLength) != 0);
    std::memcpy(response_.data(), item + kKeyLength, std::min<size_t>(response_.size(), 64 - kKeyLength));
  }
  asm volatile("" : : "r"(response_.data()) : "memory");
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
