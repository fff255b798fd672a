// rfp: Jakiro, the remote fetching paradigm (paper 004, section IV, figure 3): the server posts nothing.
//
//   client                              server core (owns a partition: EREW)
//     WRITE head│request│tail ────────▶ its slot of this client ◀── polled
//                                       executes, clears the slot
//                                       clears the head of the response that is next, stores value, then done
//     READ of RFS bytes ──────────────▶ response: head│value size│value
//       not done: again (in vain)
//       longer than RFS: one more READ
//
// Relies on WRITEs in rising order, for requests (W), and on READs that sample in rising order: done was set last, so it
// has to be sampled first (R). Nothing in a response says whether it is whole.
#include <algorithm>

#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

RpcShape shape_of(const Plan& plan) {
  RpcShape shape = kv_shape(plan, RequestHalf::kWriteSlot, ResponseHalf::kLeave);
  // Head 2, value size 2 and the value: 36, 132, 512 in section V.
  shape.fetch_bytes = plan.tuning.fetch_bytes > 0 ? std::max(plan.tuning.fetch_bytes, 4u) : plan.value_bytes + 4;
  return shape;
}

}  // namespace

std::unique_ptr<ServerNode> make_rfp_server(const Plan& plan, NodeId self, Fabric& fabric) {
  const RpcShape shape = shape_of(plan);
  return std::make_unique<KvServer>(plan, self, fabric, shape, private_store_for(plan, self, shape));
}

std::unique_ptr<ClientNode> make_rfp_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<KvClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
