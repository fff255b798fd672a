// A row goes through Replay: Trace → request → Store (and, unless the store is alone, LruModel) → Tally.
#include "bench_store/model.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "bench_store/peer/lru.h"
#include "bench_store/subject.h"
#include "bench_store/trace.h"

namespace egret::bench_store {
namespace {

using op::StatId;

constexpr uint32_t kTtlMin = 20;
constexpr uint32_t kTtlMax = 3600;

struct Row {
  const char* name;
  ValueSizes sizes;
  bool expires;
  double share;      // memory / footprint
  double memcached;  // miss ratios of then
  double design;
};
constexpr std::array<Row, 7> kRows{{
    {"16+32 B, no TTL, 1 %", ValueSizes::kFixed32, false, 0.01, .491, .387},
    {"16+32 B, no TTL, 10 %", ValueSizes::kFixed32, false, 0.1, .292, .213},
    {"16+32 B, no TTL, 30 %", ValueSizes::kFixed32, false, 0.3, .184, .125},
    {"16+32 B, TTL 20 s-1 h, 10 %", ValueSizes::kFixed32, true, 0.1, .297, .237},
    {"lognormal 200 B, no TTL, 10 %", ValueSizes::kLognormal, false, 0.1, .222, .163},
    {"lognormal 200 B, no TTL, 30 %", ValueSizes::kLognormal, false, 0.3, .106, .089},
    {"lognormal 200 B, TTL 20 s-1 h, 30 %", ValueSizes::kLognormal, true, 0.3, .127, .117},
}};

// The counters that are differences over the measured half.
struct Counts {
  uint64_t copied = 0, inserted = 0, evictions = 0, unfetched = 0, ghost_hits = 0, expired = 0;
};

Counts counts_of(const store::Store& store) {
  const Stats stats(store);
  return {stats[StatId::kCopiedBytes],      stats[StatId::kInsertedBytes], stats[StatId::kEvictions],
          stats[StatId::kEvictedUnfetched], stats[StatId::kGhostHits],     stats[StatId::kExpired]};
}

class Replay {
 public:
  Replay(const ModelOptions& options, const Row& row)
      : options_(options),
        trace_(spec_of(options, row)),
        keys_(spec_of(options, row).keys),
        memory_(
            std::max(static_cast<uint64_t>(static_cast<double>(trace_.footprint()) * row.share), store::kMinMemory)),
        lru_(memory_, keys_),
        store_(make_store(memory_, 256u << 10, clock_)) {}

  void run() {
    const auto requests = static_cast<uint64_t>(options_.requests_per_key * keys_);
    const double ns_per_request = 1e9 / options_.requests_per_second;
    double lag_ns = 0;
    for (uint64_t i = 0; i < requests; ++i) {
      if (i == requests / 2) begin_counting();
      lag_ns += ns_per_request;
      clock_.advance_ns(static_cast<uint64_t>(lag_ns));
      lag_ns -= std::floor(lag_ns);
      const Request request = trace_.next();
      request.overwrites ? set(request.key) : get(request.key);
    }
  }

  std::vector<Cell> cells(const Row& row) const {
    const Counts now = counts_of(*store_);
    const auto items = static_cast<double>(store_->counts().items);
    const auto gets = static_cast<double>(gets_);
    const double mine = static_cast<double>(misses_) / gets;
    const double lru = static_cast<double>(lru_misses_) / gets;
    const auto share = [](uint64_t part, uint64_t whole) {
      return static_cast<double>(part) / static_cast<double>(whole);
    };
    return {row.name,
            Cell(static_cast<double>(memory_) / (1 << 20), 1),
            Cell(row.memcached, 3),
            Cell(lru, 3),
            Cell(row.design, 3),
            Cell(mine, 3),
            Cell((mine / lru - 1) * 100, 1),
            Cell(static_cast<double>(memory_) / items, 1),
            Cell(share(now.copied - before_.copied, now.inserted - before_.inserted), 3),
            Cell(share(now.unfetched - before_.unfetched, now.evictions - before_.evictions), 3),
            now.ghost_hits - before_.ghost_hits,
            now.expired - before_.expired};
  }

  uint64_t wrong() const { return wrong_; }

 private:
  static TraceSpec spec_of(const ModelOptions& options, const Row& row) {
    TraceSpec spec;
    spec.keys = row.share < 0.1 ? options.keys * 5 : options.keys;
    spec.sizes = row.sizes;
    if (row.expires) {
      spec.ttl_min = kTtlMin;
      spec.ttl_max = kTtlMax;
    }
    spec.seed = options.seed;
    return spec;
  }

  void begin_counting() {
    gets_ = misses_ = lru_misses_ = 0;
    before_ = counts_of(*store_);
  }

  op::Op op_of(op::OpCode code, const KeyText& text) {
    if (ops_++ % options_.ops_per_pass == 0) store_->begin_pass();
    return make_op(code, view(text));
  }

  void get(uint32_t key) {
    const KeyText text = key_text(key);
    lru_.advance(clock_.unix_seconds());
    ++gets_;
    const bool lru_hits = lru_.get(key);
    if (!lru_hits) {
      ++lru_misses_;
      set_lru(key);
    }
    const op::Result result = execute_one(*store_, op_of(op::OpCode::kGet, text));
    if (result.code != op::ResultCode::kHit) {
      ++misses_;
      set_store(key);
      return;
    }
    const size_t told = std::min<size_t>(result.value.size(), kKeyLength);
    if (result.total_length != trace_.value_size(key) || std::memcmp(result.value.data(), text.data(), told) != 0)
      ++wrong_;
  }

  void set(uint32_t key) {
    lru_.advance(clock_.unix_seconds());
    set_lru(key);
    set_store(key);
  }

  void set_lru(uint32_t key) {
    const uint32_t ttl = trace_.ttl(key);
    lru_.set(key, memcached_chunk(kKeyLength, trace_.value_size(key)), ttl == 0 ? 0 : clock_.unix_seconds() + ttl);
  }

  // The value begins with its key's name, by which get() knows it.
  void set_store(uint32_t key) {
    const KeyText text = key_text(key);
    std::memcpy(value_.data(), text.data(), kKeyLength);
    op::Op op = op_of(op::OpCode::kSet, text);
    op.value = {value_.data(), trace_.value_size(key)};
    op.exptime = trace_.ttl(key);
    if (execute_one(*store_, op).code != op::ResultCode::kStored) ++wrong_;
  }

  const ModelOptions& options_;
  Trace trace_;
  const uint32_t keys_;
  const uint64_t memory_;
  base::ManualClock clock_;
  LruModel lru_;
  std::unique_ptr<store::Store> store_;
  std::array<char, Trace::kMaxValue> value_{};
  Counts before_;
  uint64_t ops_ = 0;
  uint64_t gets_ = 0;
  uint64_t misses_ = 0;
  uint64_t lru_misses_ = 0;
  uint64_t wrong_ = 0;
};

}  // namespace

Table run_model(const ModelOptions& options, uint64_t& wrong) {
  Table table;
  table.name = "model";
  table.notes = {
      "Miss ratios, read-through, Zipf 0.99, 10 % overwrites; memory is a share of the bytes of all keys and values."};
  table.columns = {"values, TTL, memory / footprint",
                   "MiB",
                   "memcached then",
                   "ideal memcached now",
                   "design then",
                   "this store",
                   "more misses than ideal, %",
                   "bytes/item",
                   "copied/inserted",
                   "evicted unfetched",
                   "ghost hits",
                   "expired"};
  for (const Row& row : kRows) {
    if (std::string_view(row.name).find(options.only) == std::string_view::npos) continue;
    Replay replay(options, row);
    replay.run();
    wrong += replay.wrong();
    table.rows.push_back(replay.cells(row));
    std::fprintf(stderr, "%-36s store %s, ideal memcached %s\n", row.name, table.rows.back()[5].text().c_str(),
                 table.rows.back()[3].text().c_str());
  }
  return table;
}

}  // namespace egret::bench_store
