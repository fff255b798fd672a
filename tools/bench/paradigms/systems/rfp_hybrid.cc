// rfp-hybrid: remote fetching, and replies where the server is slow (Su et al., "RFP: When RPC is Faster than Server-
// Bypass with RDMA", EuroSys 2017, section 3; not in paper 004).
//
//   client                                         server core
//     WRITE head (wants a reply?)│request│tail ──▶ slot, polled
//     fetching:  READ ◀─────────────────────────── response: head│time│value size│value
//     replies:   reply slot ◀──────────────── WRITE of the same
//
// A lane asks for replies after two calls in a row with more than R = 5 fetches in vain each, and fetches again when the
// server reports at most half of the time that it took then. The time runs from the look at the client before the one
// that found the request, so it has what the request waited. Relies on what rfp and reply rely on (R, W).
#include <algorithm>

#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

RpcShape shape_of(const Plan& plan) {
  RpcShape shape = kv_shape(plan, RequestHalf::kWriteSlot, ResponseHalf::kAdaptive);
  // Head 2, time 2, value size 2 and the value.
  shape.fetch_bytes = plan.tuning.fetch_bytes > 0 ? std::max(plan.tuning.fetch_bytes, 6u) : plan.value_bytes + 6;
  return shape;
}

}  // namespace

std::unique_ptr<ServerNode> make_rfp_hybrid_server(const Plan& plan, NodeId self, Fabric& fabric) {
  const RpcShape shape = shape_of(plan);
  return std::make_unique<KvServer>(plan, self, fabric, shape, private_store_for(plan, self, shape));
}

std::unique_ptr<ClientNode> make_rfp_hybrid_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<KvClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
