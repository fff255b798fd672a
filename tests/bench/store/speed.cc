// run_speed: a StoreBench is filled → probes on it, each beside raw2 → filled up until it evicts → probes of that.
#include "bench_store/speed.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/clock.h"
#include "bench/sampler.h"
#include "bench_store/machine.h"
#include "bench_store/map_lru.h"
#include "bench_store/raw_lines.h"
#include "bench_store/subject.h"
#include "bench_store/trace.h"

namespace egret::bench_store {
namespace {

using op::OpCode;
using op::ResultCode;
using op::StatId;

constexpr uint64_t kDrawn = 1u << 22;  // keys in the order of their use: many more than any cache holds lines
constexpr uint64_t kBlock = 1u << 13;  // ops between two looks at the CPU clock
constexpr uint64_t kFresh = 1u << 20;  // keys of one measurement of inserts
constexpr uint64_t kOverhead = 48;     // bytes of memory for each item, beyond its key and value
constexpr uint64_t kLeastMemory = 8u << 20;
constexpr uint32_t kLargeValue = 1024;
constexpr double kZipf = 0.99;
constexpr uint64_t kIndexBytes = 14;  // of an item, unless the store tells the size of its index
constexpr uint64_t kIndexPage = 64u << 10;

enum class Mix : uint8_t {
  kMakeOps,  // the store does nothing
  kGet,
  kGet95,    // 5 % sets of what is there
  kSet,      // of what is there
  kInsert,   // of what is not
  kReplace,  // a batch of deletes, then the sets of the same keys
  kIncrement,
};

struct Case {
  const char* name;
  Mix mix;
  uint32_t batch;
  bool prefetches = true;
  bool zipf = false;
};

// Sections of one run: a store that holds everything, the same filled up, and a store of larger values.
constexpr std::array<Case, 23> kCases{{
    {"making ops, hashing keys", Mix::kMakeOps, 32},
    {"100 % get, batch of 64", Mix::kGet, 64},
    {"100 % get, batch of 32", Mix::kGet, 32},
    {"100 % get, batch of 16", Mix::kGet, 16},
    {"100 % get, batch of 8", Mix::kGet, 8},
    {"100 % get, batch of 4", Mix::kGet, 4},
    {"100 % get, batch of 2", Mix::kGet, 2},
    {"100 % get, batch of 1", Mix::kGet, 1},
    {"100 % get, batch of 32, no prefetch", Mix::kGet, 32, false},
    {"95 % get, batch of 64", Mix::kGet95, 64},
    {"95 % get, batch of 32", Mix::kGet95, 32},
    {"95 % get, batch of 16", Mix::kGet95, 16},
    {"95 % get, batch of 8", Mix::kGet95, 8},
    {"95 % get, batch of 4", Mix::kGet95, 4},
    {"95 % get, batch of 2", Mix::kGet95, 2},
    {"95 % get, batch of 1", Mix::kGet95, 1},
    {"95 % get, batch of 32, no prefetch", Mix::kGet95, 32, false},
    {"100 % get, Zipf 0.99, batch of 32", Mix::kGet, 32, true, true},
    {"100 % get, Zipf 0.99, batch of 32, no prefetch", Mix::kGet, 32, false, true},
    {"set (overwrite), batch of 32", Mix::kSet, 32},
    {"set (overwrite), batch of 32, no prefetch", Mix::kSet, 32, false},
    {"delete and insert, batch of 32", Mix::kReplace, 32},
    {"incr, batch of 32", Mix::kIncrement, 32},
}};
constexpr std::array<Case, 2> kFullCases{{
    {"insert, evicting, batch of 32", Mix::kInsert, 32},
    {"insert, evicting, batch of 32, no prefetch", Mix::kInsert, 32, false},
}};
constexpr std::array<Case, 5> kLargeCases{{
    {"1 KiB: 100 % get, batch of 32", Mix::kGet, 32},
    {"1 KiB: 100 % get, batch of 1", Mix::kGet, 1},
    {"1 KiB: 100 % get, batch of 32, no prefetch", Mix::kGet, 32, false},
    {"1 KiB: 95 % get, batch of 32", Mix::kGet95, 32},
    {"1 KiB: set (overwrite), batch of 32", Mix::kSet, 32},
}};
constexpr std::array<Case, 1> kFullLargeCases{{{"1 KiB: insert, evicting, batch of 32", Mix::kInsert, 32}}};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "store-bench: %s\n", why.c_str());
  std::exit(1);
}

uint64_t memory_for(uint64_t items, uint32_t value_size) {
  const uint64_t bytes = std::max(items * (kKeyLength + value_size + kOverhead), kLeastMemory);
  return (bytes + (1u << 20) - 1) >> 20 << 20;
}

std::vector<KeyText> draw_uniform(uint64_t items) {
  bench::Rng rng(3);
  std::vector<KeyText> keys(kDrawn);
  for (KeyText& key : keys) key = key_text(rng.next() % items);
  return keys;
}

// The popular keys are strewn over the order of insertion, and so over memory.
std::vector<KeyText> draw_zipf(uint64_t items) {
  constexpr uint64_t kPrime = 2654435761;
  bench::Rng rng(4);
  const bench::ZipfSampler sampler(static_cast<uint32_t>(items), kZipf);
  std::vector<KeyText> keys(kDrawn);
  for (KeyText& key : keys) key = key_text(sampler.sample(rng) * kPrime % items);
  return keys;
}

class StoreBench {
 public:
  StoreBench(uint64_t items, uint64_t memory, uint32_t value_size)
      : uniform_(draw_uniform(items)), zipf_(draw_zipf(items)), value_(value_size, ' '), response_(value_size) {
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

  double measure(const Case& each, double seconds) {
    if (each.mix == Mix::kInsert) prepare_fresh(kFresh);
    const std::vector<KeyText>& keys = each.mix == Mix::kInsert ? fresh_ : each.zipf ? zipf_ : uniform_;
    const double start = cpu_seconds();
    double now = start;
    uint64_t done = 0;
    uint64_t at = each.mix == Mix::kInsert ? 0 : at_;
    do {
      for (uint64_t i = 0; i < kBlock; i += each.batch) run_pass(each, keys.data() + at + i);
      done += kBlock;
      at = (at + kBlock) % keys.size();
      now = cpu_seconds();
    } while (now - start < seconds && !(each.mix == Mix::kInsert && at == 0));
    if (each.mix != Mix::kInsert) at_ = at;
    asm volatile("" : : "r"(sum_));
    const double ops = static_cast<double>(done) * (each.mix == Mix::kReplace ? 2 : 1);
    return (now - start) / ops * 1e9;
  }

  // The least that a batch of gets could do: ops made and hashed, raw2's two lines, a key compared, a value copied.
  double measure_least(const RawLines& raw, double seconds) {
    const double start = cpu_seconds();
    double now = start;
    uint64_t done = 0;
    do {
      for (uint64_t i = 0; i < kBlock; i += store::kMaxBatch) least_pass(raw, uniform_.data() + at_ + i);
      done += kBlock;
      at_ = (at_ + kBlock) % uniform_.size();
      now = cpu_seconds();
    } while (now - start < seconds);
    asm volatile("" : : "r"(sum_));
    return (now - start) / static_cast<double>(done) * 1e9;
  }

  // Inserts until the store has begun to evict.
  void fill_up() {
    const Case insert{"", Mix::kInsert, store::kMaxBatch};
    while (Stats(*store_)[StatId::kEvictions] == 0) {
      prepare_fresh(kBlock);
      for (uint64_t i = 0; i < kBlock; i += insert.batch) run_pass(insert, fresh_.data() + i);
    }
  }

  std::unique_ptr<RawLines> make_control() const {
    const uint64_t pages = Stats(*store_)[StatId::kIndexPages];
    const uint64_t index = pages != 0 ? pages * kIndexPage : store_->item_count() * kIndexBytes;
    return std::make_unique<RawLines>(index, store_->memory_used() - index);
  }

  std::vector<std::string> notes() const {
    const uint64_t items = store_->item_count();
    const uint64_t tenths = store_->memory_used() * 10 / items;
    return {std::to_string(items) + " items of 16 + " + std::to_string(value_.size()) + " B, " +
                std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) +
                " B each, all included; inserted at " + Cell(fill_ns_, 0).text() +
                " ns each, in batches of 32, while the store grew.",
            "The store: " + pages_.to_string() + "."};
  }

  uint64_t wrong() const { return wrong_; }

 private:
  void fill(uint64_t items) {
    const Case insert{"", Mix::kInsert, store::kMaxBatch};
    double seconds = 0;
    while (next_fresh_ < items) {
      prepare_fresh(std::min(kBlock, items - next_fresh_));
      const double start = cpu_seconds();
      for (uint64_t i = 0; i < fresh_.size(); i += insert.batch) {
        const Case pass{"", Mix::kInsert, static_cast<uint32_t>(std::min<uint64_t>(insert.batch, fresh_.size() - i))};
        run_pass(pass, fresh_.data() + i);
      }
      seconds += cpu_seconds() - start;
    }
    fill_ns_ = seconds / static_cast<double>(items) * 1e9;
  }

  void prepare_fresh(uint64_t count) {
    fresh_.resize(count);
    for (KeyText& key : fresh_) key = key_text(next_fresh_++);
  }

  // What the backend does between two polls: one begin_pass() and one batch, or two if it is more than a batch holds.
  void run_pass(const Case& each, const KeyText* keys) {
    ops_since_clock_ += each.batch;
    if (ops_since_clock_ >= store::kMaxBatch) {  // a round of polls reads the clock once, whatever the batches are
      now_ns_ = clock_.now_ns();
      ops_since_clock_ = 0;
    }
    store_->begin_pass(now_ns_);
    for (uint32_t done = 0; done < each.batch; done += store::kMaxBatch) {
      const auto count = static_cast<uint32_t>(std::min<size_t>(each.batch - done, store::kMaxBatch));
      switch (each.mix) {
        case Mix::kMakeOps:
          make_ops(OpCode::kGet, keys + done, count);
          for (uint32_t i = 0; i < count; ++i) sum_ += ops_[i].hash;
          break;
        case Mix::kGet:
          make_ops(OpCode::kGet, keys + done, count);
          execute(each.prefetches, count);
          break;
        case Mix::kGet95:
          make_ops(OpCode::kGet, keys + done, count);
          make_sets(count);
          execute(each.prefetches, count);
          break;
        case Mix::kSet:
        case Mix::kInsert:
          make_ops(OpCode::kSet, keys + done, count);
          execute(each.prefetches, count);
          break;
        case Mix::kReplace:
          make_ops(OpCode::kDelete, keys + done, count);
          execute(each.prefetches, count);
          make_ops(OpCode::kSet, keys + done, count);
          execute(each.prefetches, count);
          break;
        case Mix::kIncrement:
          make_ops(OpCode::kArith, keys + done, count);
          execute(each.prefetches, count);
          break;
      }
    }
  }

  void least_pass(const RawLines& raw, const KeyText* keys) {
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

  void make_ops(OpCode code, const KeyText* keys, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      ops_[i] = make_op(code, view(keys[i]));
      ops_[i].delta = 1;
      if (code == OpCode::kSet) ops_[i].value = value_;
    }
  }

  // One op in twenty becomes a set.
  void make_sets(uint32_t count) {
    for (; until_set_ < count; until_set_ += 20) {
      ops_[until_set_].code = OpCode::kSet;
      ops_[until_set_].value = value_;
    }
    until_set_ -= count;
  }

  void execute(bool prefetches, uint32_t count) {
    if (prefetches) {
      store_->prepare({ops_.data(), count});
      store_->locate();
      for (uint32_t i = 0; i < count; ++i) take(ops_[i].code, store_->execute(i));
    } else {
      for (uint32_t i = 0; i < count; ++i) take(ops_[i].code, store_->execute_one(ops_[i]));
    }
  }

  // Copies a value as if into a response slot.
  void take(OpCode code, const op::Result& result) {
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

  const std::vector<KeyText> uniform_;
  const std::vector<KeyText> zipf_;
  std::string value_;
  std::vector<char> response_;
  base::SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  MemoryMap pages_;
  std::vector<KeyText> fresh_;
  uint64_t next_fresh_ = 0;
  uint64_t at_ = 0;
  std::array<op::Op, store::kMaxBatch> ops_;
  uint64_t now_ns_ = 0;
  uint32_t ops_since_clock_ = store::kMaxBatch;
  uint32_t until_set_ = 0;
  double fill_ns_ = 0;
  uint64_t sum_ = 0;  // keeps what is read from being optimised away
  uint64_t wrong_ = 0;
};

template <size_t kCount>
void run_cases(StoreBench& bench, const std::array<Case, kCount>& cases, const Probe& control,
               std::vector<Probe> probes, const ProbeOptions& options, Table& table) {
  for (const Case& each : cases) {
    probes.push_back({each.name, [&bench, &each](double seconds) { return bench.measure(each, seconds); }});
  }
  run_probes(probes, control, options, table);
}

// One store: cases while it holds everything, then cases while it evicts.
template <size_t kRoomy, size_t kFull>
Table run_store(const char* name, StoreBench& bench, const std::array<Case, kRoomy>& roomy,
                const std::array<Case, kFull>& full, const ProbeOptions& options) {
  Table table;
  table.name = name;
  table.notes = bench.notes();
  table.columns = probe_columns("raw2");
  const MemoryMap before = MemoryMap::now();
  const std::unique_ptr<RawLines> raw = bench.make_control();
  table.notes.push_back("raw2: " + (MemoryMap::now() - before).to_string() + ".");
  const auto measure_raw = [&raw](double seconds) { return raw->measure(seconds); };
  const Probe least{"raw2 with ops made, keys hashed and compared, values copied",
                    [&bench, &raw](double seconds) { return bench.measure_least(*raw, seconds); }};
  run_cases(bench, roomy, {"raw2, batch of 32", measure_raw}, {least}, options, table);
  bench.fill_up();
  run_cases(bench, full, {"raw2, batch of 32, meanwhile", measure_raw}, {}, options, table);
  return table;
}

// The peer answers one key at a time; there is nothing to batch.
class PeerBench {
 public:
  PeerBench(uint64_t items, uint32_t value_size)
      : keys_(draw_uniform(items)), value_(value_size, 'v'), response_(value_size), map_(items) {
    for (uint64_t i = 0; i < items; ++i) map_.set(view(key_text(i)), value_);
  }

  double measure(bool sets, double seconds) {
    const double start = cpu_seconds();
    double now = start;
    uint64_t done = 0;
    do {
      for (uint64_t i = 0; i < kBlock; ++i) run_one(keys_[at_ + i], sets && i % 20 == 0);
      done += kBlock;
      at_ = (at_ + kBlock) % keys_.size();
      now = cpu_seconds();
    } while (now - start < seconds);
    asm volatile("" : : "r"(response_.data()) : "memory");
    return (now - start) / static_cast<double>(done) * 1e9;
  }

  uint64_t wrong() const { return wrong_; }

 private:
  void run_one(const KeyText& key, bool sets) {
    if (sets) {
      map_.set(view(key), value_);
      return;
    }
    const std::string* value = map_.get(view(key));
    if (value == nullptr || value->size() != response_.size()) {
      ++wrong_;
    } else {
      std::memcpy(response_.data(), value->data(), value->size());
    }
  }

  const std::vector<KeyText> keys_;
  const std::string value_;
  std::vector<char> response_;
  MapLru map_;
  uint64_t at_ = 0;
  uint64_t wrong_ = 0;
};

Table run_peer(const SpeedOptions& options, uint64_t& wrong) {
  const uint64_t items = std::min(options.items, options.peer_items);
  Table table;
  table.name = "peer";
  table.columns = probe_columns("raw2");
  const MemoryMap before = MemoryMap::now();
  PeerBench bench(items, options.value_size);
  table.notes = {"The peer: a std::unordered_map of strings with an LRU list, " + std::to_string(items) +
                 " items: " + (MemoryMap::now() - before).to_string() + ". raw2 is of the store's size for as many."};
  RawLines raw(items * kIndexBytes, items * (kKeyLength + options.value_size + 16));
  const std::vector<Probe> probes = {
      {"map: 100 % get, one by one", [&bench](double seconds) { return bench.measure(false, seconds); }},
      {"map: 95 % get, one by one", [&bench](double seconds) { return bench.measure(true, seconds); }}};
  run_probes(probes, {"raw2, batch of 32", [&raw](double seconds) { return raw.measure(seconds); }}, options.probes,
             table);
  wrong += bench.wrong();
  return table;
}

}  // namespace

std::vector<Table> run_speed(const SpeedOptions& options, uint64_t& wrong) {
  std::vector<Table> tables;
  const uint64_t memory =
      options.memory_mib != 0 ? options.memory_mib << 20 : memory_for(options.items, options.value_size);
  {
    StoreBench bench(options.items, memory, options.value_size);
    tables.push_back(run_store("speed", bench, kCases, kFullCases, options.probes));
    wrong += bench.wrong();
  }
  if (options.large_values) {
    const uint64_t items = std::max<uint64_t>(memory / (kKeyLength + kLargeValue + 2 * kOverhead), 1);
    StoreBench bench(items, memory_for(items, kLargeValue + kOverhead), kLargeValue);
    tables.push_back(run_store("speed, 1 KiB", bench, kLargeCases, kFullLargeCases, options.probes));
    wrong += bench.wrong();
  }
  if (options.peer_items != 0) tables.push_back(run_peer(options, wrong));
  return tables;
}

}  // namespace egret::bench_store
