// A server core whose clients' messages come by lanes: the backend's slot poller over this core's store.
//
//   rpc::SlotPoller::poll ─ op::Op ─▶ execute ─▶ PrivateStore ─ op::Result ─▶ response slot; pushed if the client wants it
#pragma once

#include <memory>
#include <vector>

#include "bench_paradigms/lanes/lane_shape.h"
#include "bench_paradigms/node.h"
#include "bench_paradigms/stores/private_store.h"
#include "rpc/slot_poller.h"

namespace egret::bench_paradigms {

class LaneServer final : public ServerNode, private rpc::OpHandler, private rpc::DeliveryRelay {
 public:
  LaneServer(const Plan& plan, NodeId self, Fabric& fabric, const LaneShape& shape);

  base::Status prepare() override;
  std::string notice(NodeId to) override;
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override;
  base::Status load() override;
  bool serve() override;
  Trouble trouble() const override { return {.retries = poller_.counters().torn}; }

 private:
  FabricServerEnd& end(NodeId client) { return *ends_[client - plan_.servers]; }
  uint64_t nonce(NodeId client) const;

  void begin_round() override {}
  void foresee(std::span<op::Op> ops) override;
  void prepare(std::span<op::Op> ops, std::span<const rpc::LaneId>) override { ops_ = ops; }
  void locate() override {}
  op::Result execute(size_t index) override;
  void lane_dropped(rpc::LaneId) override {}
  void relay(const rpc::LaneBinding&, size_t, size_t, std::span<const transport::Piece>) override {
  }  // every end is this core's own

  const Plan& plan_;
  NodeId self_;
  Fabric& fabric_;
  LaneShape shape_;
  PrivateStore store_;
  std::vector<std::byte> value_;  // of the get that was executed last
  std::span<op::Op> ops_;
  std::vector<std::unique_ptr<FabricServerEnd>> ends_;  // by client
  rpc::SlotPoller poller_;
};

// The plan's clock, or the host's.
const base::Clock& clock_of(const Plan& plan);

}  // namespace egret::bench_paradigms
