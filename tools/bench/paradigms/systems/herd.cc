// herd: HERD (paper 001, section 4.2 and 4.3, figure 8; paper 002, section 4.1): requests by UC WRITE, responses over UD.
//
//   client                                     server core
//     RECV on its UD pair for this core
//     UC WRITE, right-aligned in 1,024 bytes ─▶ … │ value │ length 2 │ key 16 ◀── polled: key not 0
//                                               executes, key = 0 (the paper: after the SEND)
//     ◀──────────────────────────────────── UD SEND; those of one pass by one doorbell (--doorbell)
//
// Slot c * W + r mod W of the core; as the paper: of one region with one key, by default each client has its own.
// What is lost is written again after 100 ms; as the paper it may then be executed twice, by default it is not.
// Relies on WRITEs in rising order, the key last (W), and on a network that loses next to nothing (loss).
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

RpcShape shape_of(const Plan& plan) {
  return kv_shape(plan, RequestHalf::kWriteSlot, ResponseHalf::kDatagram, PairType::kUc);
}

}  // namespace

std::unique_ptr<ServerNode> make_herd_server(const Plan& plan, NodeId self, Fabric& fabric) {
  const RpcShape shape = shape_of(plan);
  return std::make_unique<KvServer>(plan, self, fabric, shape, private_store_for(plan, self, shape));
}

std::unique_ptr<ClientNode> make_herd_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<KvClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
