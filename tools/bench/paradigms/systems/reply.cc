// reply: ServerReply (paper 004, section V-A): the server sends each result by an RDMA WRITE of its own.
//
//   client                              server core (owns a partition: EREW)
//     WRITE head│request│tail ────────▶ its slot of this client ◀── polled
//                                       executes, clears the slot
//     reply slot ◀──────────────── WRITE head│response│tail
//     polled
//
// Relies on WRITEs that are placed in rising order, or in falling order: head and tail are looked at. One that places
// both before the middle passes for whole (W). With requests of 8 bytes this is WR/WR of paper 003, section 3.2 and
// figure 1.
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

RpcShape shape_of(const Plan& plan) {
  return kv_shape(plan, RequestHalf::kWriteSlot, ResponseHalf::kWrite);
}

}  // namespace

std::unique_ptr<ServerNode> make_reply_server(const Plan& plan, NodeId self, Fabric& fabric) {
  const RpcShape shape = shape_of(plan);
  return std::make_unique<KvServer>(plan, self, fabric, shape, private_store_for(plan, self, shape));
}

std::unique_ptr<ClientNode> make_reply_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<KvClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
