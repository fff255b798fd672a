#include "bench_store/peer/peer.h"

#include <cstring>
#include <string>
#include <vector>

#include "bench_store/keys.h"
#include "bench_store/machine.h"
#include "bench_store/peer/map_lru.h"
#include "bench_store/peer/raw_lines.h"

namespace egret::bench_store {
namespace {

constexpr uint64_t kBlock = 1u << 13;  // ops between two looks at the CPU clock
constexpr uint64_t kIndexBytes = 14;   // of an item in a store, as in its raw2
constexpr uint64_t kHeaderBytes = 16;

// The peer answers one key at a time; there is nothing to batch.
class PeerBench {
 public:
  PeerBench(uint64_t items, uint32_t value_size)
      : keys_(draw_uniform(items)), value_(value_size, 'v'), response_(value_size), map_(items) {
    for (uint64_t i = 0; i < items; ++i) map_.set(view(key_text(i)), value_);
  }

  double measure(bool sets, double seconds) {
    const auto draw = [this] {
      at_ = (at_ + kBlock) % keys_.size();
      return kBlock;
    };
    const double ns = ns_per_op(seconds, draw, [&] {
      for (uint64_t i = 0; i < kBlock; ++i) run_one(keys_[at_ + i], sets && i % 20 == 0);
    });
    asm volatile("" : : "r"(response_.data()) : "memory");
    return ns;
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

}  // namespace

Table run_peer(uint64_t items, uint32_t value_size, const ProbeOptions& options, uint64_t& wrong) {
  Table table;
  table.name = "peer";
  table.columns = probe_columns("raw2");
  const MemoryMap before = MemoryMap::now();
  PeerBench bench(items, value_size);
  table.notes = {"The peer: a std::unordered_map of strings with an LRU list, " + std::to_string(items) +
                 " items: " + (MemoryMap::now() - before).to_string() + ". raw2 is of the store's size for as many."};
  RawLines raw(items * kIndexBytes, items * (kKeyLength + value_size + kHeaderBytes));
  const std::vector<Probe> probes = {
      {"map: 100 % get, one by one", [&bench](double seconds) { return bench.measure(false, seconds); }},
      {"map: 95 % get, one by one", [&bench](double seconds) { return bench.measure(true, seconds); }}};
  run_probes(probes, {"raw2, batch of 32", [&raw](double seconds) { return raw.measure(seconds); }}, options, table);
  wrong += bench.wrong();
  return table;
}

}  // namespace egret::bench_store
