// Queues and queue pairs of the verbs fabric: Works become ibv_send_wr in arrays that are there from the start.
//
// A completion that reports an error tells nothing but its wr_id. So a wr_id has the verb in its upper bits, the tag below.
#pragma once

#include <vector>

#include "bench_paradigms/fabric/verbs_fabric.h"
#include "bench_verbs/verbs.h"

namespace egret::bench_paradigms {

class VerbsWay final : public Way {
 public:
  explicit VerbsWay(bench_verbs::Way handle) : handle_(std::move(handle)) {}
  ibv_ah* handle() const { return handle_.get(); }

 private:
  bench_verbs::Way handle_;
};

class VerbsQueue final : public Queue {
 public:
  explicit VerbsQueue(bench_verbs::Queue handle) : handle_(std::move(handle)) {}
  uint32_t poll(std::span<Completion> out) override;
  ibv_cq* handle() const { return handle_.get(); }

 private:
  bench_verbs::Queue handle_;
};

class VerbsPair final : public Pair {
 public:
  // `handle` is in state INIT.
  VerbsPair(bench_verbs::Handle handle, const PairSpec& spec, const Route& route, const Capabilities& all,
            VerbCounts& counts);
  ~VerbsPair() override;
  base::Status join(const NodeAddress& peer, uint32_t peer_pair) override;
  ibv_qp* handle() const { return handle_.get(); }

 private:
  bool do_post(std::span<const Work> works) override;
  bool do_post_receives(std::span<const Receive> receives) override;
  bool fill(const Work& work, ibv_send_wr& request, ibv_sge& piece) const;
  void break_down();

  const Route& route_;
  uint32_t reads_, peer_reads_;  // READs and atomics under way, from here and from the peer
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::vector<ibv_recv_wr> receive_requests_;
  std::vector<ibv_sge> receive_pieces_;
  bench_verbs::Handle handle_;
};

// The way to that peer.
ibv_ah_attr way_to(const Route& route, const NodeAddress& peer);

}  // namespace egret::bench_paradigms
