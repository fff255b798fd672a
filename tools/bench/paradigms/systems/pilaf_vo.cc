// pilaf-vo: Pilaf by verb messages only (paper 000, section 5, "Points of comparison", and figure 7): what its gets
// cost without READs.
//
//   client                      server core
//     RECV, SEND op ──────────▶ RECV ─▶ executes, posts the RECV again
//     ◀─────────────────────── SEND result
//
// Relies on nothing: completions say what is there, RC loses nothing.
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

RpcShape shape_of(const Plan& plan) {
  return kv_shape(plan, RequestHalf::kSend, ResponseHalf::kSend);
}

}  // namespace

std::unique_ptr<ServerNode> make_pilaf_vo_server(const Plan& plan, NodeId self, Fabric& fabric) {
  const RpcShape shape = shape_of(plan);
  return std::make_unique<KvServer>(plan, self, fabric, shape, private_store_for(plan, self, shape));
}

std::unique_ptr<ClientNode> make_pilaf_vo_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<KvClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
