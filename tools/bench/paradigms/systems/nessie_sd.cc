// nessie-sd: the server-driven design that paper 003 compares Nessie with (sections 2.3 and 6.1): WRITE in, WRITE back,
// nothing inline. The store of each core is its own.
//
//   client                        server core
//     WRITE request ────────────▶ slot, polled
//     reply slot ◀────────── WRITE response
//
// Relies on what reply relies on (W).
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

RpcShape shape_of(const Plan& plan) {
  RpcShape shape = kv_shape(plan, RequestHalf::kWriteSlot, ResponseHalf::kWrite);
  shape.allows_inline = false;
  return shape;
}

}  // namespace

std::unique_ptr<ServerNode> make_nessie_sd_server(const Plan& plan, NodeId self, Fabric& fabric) {
  const RpcShape shape = shape_of(plan);
  return std::make_unique<KvServer>(plan, self, fabric, shape, private_store_for(plan, self, shape));
}

std::unique_ptr<ClientNode> make_nessie_sd_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<KvClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
