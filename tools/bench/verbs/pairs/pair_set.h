// Queue pairs of one type to one peer, with their slots. Either those that rdma_cm has connected (the station owns
// them), or pairs made by hand: ibv_create_qp, and the way to the peer as the control connection has found it. By hand,
// since UD pairs are not connected, and since thousands of pairs share completion queues: one for each posting thread
// (and another for its RECVs). To poll one for each pair would be what is measured.
//
//   make   on both sides ─▶ numbers and memory are told each other (joining.h) ─▶ join ─▶ verbs may be posted
//
// Threads: pair i is thread (i mod point.threads)'s during a point, and has completion queue i mod making.threads; so
// that no two threads share one, these are the same, or there is a queue for each pair in use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench_verbs/pairs/by_hand.h"
#include "bench_verbs/pairs/slots.h"

namespace egret::bench_verbs {

// What both sides have to agree on. Travels as it is.
struct Making {
  Set set = Set::kSweep;
  uint32_t threads = 1;     // completion queues (and as many for RECVs)
  uint32_t depth = 1;       // sends under way on each pair
  uint32_t read_depth = 1;  // READs and atomics of these
  Shape shape;              // shape.depth of UD: RECVs that are always posted on each pair

  bool is_datagrams() const { return set == Set::kDatagrams || set == Set::kSweepDatagrams; }
};

// What a SEND tells about itself, in its immediate data; and what a RECV has been told.
struct SendLabel {
  uint32_t point = 0;  // its last 12 bits
  uint32_t pair = 0;   // less than 4,096
  uint32_t slot = 0;   // less than 256

  static constexpr uint32_t kPointMask = 0xfff;
  uint32_t packed() const { return (point & kPointMask) << 20 | pair << 8 | slot; }
  static SendLabel of(uint32_t packed) { return {packed >> 20, packed >> 8 & 0xfff, packed & 0xff}; }
};
inline constexpr uint32_t kMaxPairsOfSet = 4096;

struct Pair {
  ibv_qp* handle = nullptr;
  ibv_cq* queue = nullptr;  // of its sends
  uint32_t inline_bytes = 0;
  uint32_t peer = 0;  // made by hand: the other side's number
};

class PairSet {
 public:
  PairSet() = default;
  PairSet(const PairSet&) = delete;
  PairSet& operator=(const PairSet&) = delete;

  Slots& slots() { return slots_; }
  void add(const Connection& connection);

  // As many pairs as the device gives, at most making.shape.queue_pairs; `shortfall` says why there are not all.
  // Fails if there is none, or no memory.
  base::Status make(const rdma_cm_id* control, ibv_pd* domain, const Making& making);
  const std::string& shortfall() const { return shortfall_; }
  // To the peer's pairs of these numbers: the first ones made here, in their order. Others are of no use.
  base::Status join(const rdma_cm_id* control, const std::vector<uint32_t>& numbers, uint32_t read_depth);
  const Making& making() const { return making_; }

  uint32_t size() const { return static_cast<uint32_t>(pairs_.size()); }
  Pair& pair(uint32_t index) { return pairs_[index]; }
  ibv_ah* way() const { return way_.get(); }  // UD: to the peer
  // UD: the queue of what that pair receives; and a RECV of that buffer (pair × RECVs + slot) anew.
  ibv_cq* arrivals(uint32_t pair) const { return arrivals_[pair % making_.threads].get(); }
  bool post_receive(uint32_t buffer);

 private:
  base::Status make_queues(ibv_context* device);
  base::Status make_pair(const rdma_cm_id* control, ibv_pd* domain, uint32_t index, uint32_t inline_bytes);
  base::Status make_first(const rdma_cm_id* control, ibv_pd* domain);

  Making making_;
  Slots slots_;
  Way way_;
  std::vector<Queue> queues_, arrivals_;
  std::vector<Handle> handles_;  // last: queue pairs go before all else
  std::vector<Pair> pairs_;
  std::string shortfall_;
};

}  // namespace egret::bench_verbs
