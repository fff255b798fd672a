// A fabric inside one process and one thread: for tests, and for hosts without a device. It keeps what the verbs promise
// (order within a pair, rights, RECV before SEND, room of queues, UC and UD that lose in silence) and nothing more: which
// pair goes on next is drawn from a seed, and a transfer may take place in pieces, other nodes' work in between.
//
//   Pair::post ─▶ the pair's queue ─▶ MemoryWorld::advance: one step of one pair, drawn ─▶ bytes move ─▶ Queue::poll
//
// Whoever drives the nodes calls `advance` between their steps. Given the same seed and calls, the same happens.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "bench/sampler.h"
#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

enum class TearOrder : uint8_t { kUp, kDown, kEnds };  // kEnds: first and last piece before the middle

// Transfers of that verb take place in pieces. 0 bytes: as a whole.
struct Tearing {
  uint32_t read_piece = 0;
  uint32_t write_piece = 0;
  TearOrder order = TearOrder::kUp;
};

class MemoryPair;

class MemoryWorld {
 public:
  explicit MemoryWorld(uint64_t seed) : rng_(seed) {}
  ~MemoryWorld();
  MemoryWorld(const MemoryWorld&) = delete;
  MemoryWorld& operator=(const MemoryWorld&) = delete;

  // The world outlives its fabrics.
  std::unique_ptr<Fabric> make_fabric(uint32_t node);
  Capabilities& capabilities() { return capabilities_; }  // what it is to lack; before fabrics are made
  void set_tearing(const Tearing& tearing) { tearing_ = tearing; }
  // One of so many UC and UD transfers vanishes; 0: none.
  void set_loss(uint32_t one_in) { loss_one_in_ = one_in; }
  // COMPARE_SWAPs swap without comparing, and say that they have: as if somebody used WRITEs instead.
  void set_blind_swaps(bool is_blind) { has_blind_swaps_ = is_blind; }
  // One of so many FETCH_ADDs answers, and adds nothing; 0: none.
  void set_forgotten_adds(uint32_t one_in) { add_forgotten_one_in_ = one_in; }
  // Its memory and pairs are gone, as a killed process's.
  void kill(uint32_t node);

  size_t pairs() const { return pairs_.size(); }  // that there are now

  // One step of one pair. False: there is none to make.
  bool advance();
  // Until nothing is left that can go on.
  void settle() {
    while (advance()) {
    }
  }

 private:
  friend class MemoryFabric;
  friend class MemoryPair;
  friend class MemoryRegion;

  struct Span {
    std::byte* data;
    size_t size;
    uint8_t rights;
    uint32_t node;
  };
  MemoryPair* pair(uint32_t number) const;
  // Null: no such right there.
  std::byte* reach(uint64_t address, uint32_t key, uint64_t bytes, uint8_t right) const;
  bool is_dead(uint32_t node) const;
  bool is_lost();
  bool forgets_add() { return add_forgotten_one_in_ != 0 && rng_.below(add_forgotten_one_in_) == 0; }

  bench::Rng rng_;
  Capabilities capabilities_{.has_atomics = true,
                             .has_uc = true,
                             .has_ud = true,
                             .is_emulated = true,
                             .is_in_order = true,
                             .inline_bytes = 256,
                             .mtu = 4096,
                             .read_depth = 16,
                             .device = "memory of this process"};
  Tearing tearing_;
  uint32_t loss_one_in_ = 0;
  bool has_blind_swaps_ = false;
  uint32_t add_forgotten_one_in_ = 0;
  uint32_t next_key_ = 1;
  uint32_t next_pair_ = 1;
  std::map<uint32_t, Span> memories_;  // by remote key
  std::map<uint32_t, MemoryPair*> pairs_;
  std::vector<MemoryPair*> busy_;  // that have Works to do
  std::vector<uint32_t> dead_;
};

}  // namespace egret::bench_paradigms
