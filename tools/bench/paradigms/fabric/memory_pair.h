// Pairs and queues of the memory fabric: what is posted, what is under way, what has completed.
#pragma once

#include <deque>
#include <vector>

#include "bench_paradigms/fabric/memory_fabric.h"

namespace egret::bench_paradigms {

class MemoryQueue final : public Queue {
 public:
  explicit MemoryQueue(uint32_t entries) : entries_(entries) {}
  uint32_t poll(std::span<Completion> out) override;
  // `pair`: whose room for Works is free up to that one, when the completion is polled; null for RECVs.
  void add(const Completion& completion, MemoryPair* pair, uint64_t frees_up_to);
  void forget(const MemoryPair* pair);

 private:
  struct Entry {
    Completion completion;
    MemoryPair* pair;
    uint64_t frees_up_to;
  };
  uint32_t entries_;
  std::deque<Entry> entries_waiting_;
};

class MemoryPair final : public Pair {
 public:
  MemoryPair(MemoryWorld& world, uint32_t node, const PairSpec& spec, VerbCounts& counts);
  ~MemoryPair() override;
  base::Status join(const NodeAddress& peer, uint32_t peer_pair) override;

  // One step of the oldest Work. False: it cannot go on now (RC: no RECV there).
  bool advance();
  bool is_busy() const { return !works_.empty(); }
  void free_sends(uint64_t up_to) { freed_ = up_to; }
  uint32_t node() const { return node_; }
  void break_down();

 private:
  struct Posted {
    Work work;
    std::vector<std::byte> inlined;
    uint64_t sequence;
    uint32_t pieces_done = 0;
  };
  enum class Step : uint8_t { kDone, kMore, kBlocked, kRefused };

  bool do_post(std::span<const Work> works) override;
  bool do_post_receives(std::span<const Receive> receives) override;
  Step transfer(Posted& posted);
  Step send(Posted& posted);
  Step move_pieces(Posted& posted, std::byte* to, const std::byte* from, uint32_t piece);
  Step atomic(Posted& posted);
  void complete(const Posted& posted, bool is_ok);
  const std::byte* source(const Posted& posted) const;
  bool deliver(MemoryPair& peer, const Posted& posted, uint32_t grh);

  MemoryWorld& world_;
  uint32_t node_;
  PairSpec spec_;
  uint32_t peer_ = 0;
  uint32_t peer_node_ = 0;
  bool is_joined_ = false;
  bool is_broken_ = false;
  uint64_t sequence_ = 0;  // Works posted
  uint64_t freed_ = 0;     // Works whose room is free again
  std::deque<Posted> works_;
  std::deque<Receive> receives_;
};

}  // namespace egret::bench_paradigms
