// egret: this project's own lanes (protocol/rpc, protocol/wire), as they ship: remote fetching (paper 004, section IV,
// figure 3; its hybrid: RFP, EuroSys 2017, section 3) of messages that hold many ops, with checksums where paper 004 relies
// on order.
//
//   client (rpc::ClientSession, a lane)                server core (rpc::SlotPoller; owns a partition: EREW)
//     ops of a pass ─▶ a message
//     WRITE seq│XXH3│ops … ──────────────────────────▶ slot seq mod window ◀── polled: is it the expected seq?
//                                                      copies it, checks the copy, executes all of its ops
//     READ of 256 to 1,024 bytes, as was learnt ─────▶ response slot: seq│XXH3│results …
//       another seq: again, later (in vain)            (the server posts nothing)
//       longer: one more READ.  Torn: again
//     after two messages with more than 5 READs in vain each:
//     WRITE want = seq ──────────────────────────────▶ ◀── WRITE of the response with immediate, until it is fast again
//
// The classes are those of the daemons, unchanged, over a transport on the laboratory's fabric (lanes/). What differs: each
// core is a session of its own, since it has a protection domain of its own here; nobody sleeps, as no node of the laboratory
// does; the partition's store is the laboratory's, as of the other systems. Slots are as large as they ship over RDMA, or as
// one op needs. A value that was cut because others of its message left too little room is asked for again.
//
// Relies on nothing that the verbs do not promise: a message counts when its seq is the expected one and its checksum, seeded
// with session and seq, is right, in whatever order it was placed or sampled.
#include <algorithm>

#include "bench_paradigms/lanes/lane_client.h"
#include "bench_paradigms/lanes/lane_server.h"
#include "bench_paradigms/systems/systems.h"
#include "wire/codec.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kShippedSlot = 4 << 10;  // request and response, over RDMA (backend/config.h)
constexpr uint32_t kShippedWindow = 32;     // slots of a lane, at most (the option window)
constexpr uint32_t kSlotUnit = 64;

uint32_t slot_for(size_t bytes) {
  return std::max(kShippedSlot, static_cast<uint32_t>((bytes + kSlotUnit - 1) / kSlotUnit * kSlotUnit));
}

LaneShape shape_of(const Plan& plan) {
  const std::string key(plan.key_bytes, 'k');
  const std::string value(plan.value_bytes, 'v');
  op::Op op;
  op.key = key;
  op.value = value;
  op.code = op::OpCode::kSet;
  const size_t request = sizeof(wire::RequestHeader) + wire::encoded_op_size(op);
  op.code = op::OpCode::kGet;
  const size_t response = sizeof(wire::ResponseHeader) + wire::min_result_size(op) + plan.value_bytes;
  return {.layout = {.lanes = 1,
                     .window = std::clamp(plan.window, wire::kMinWindow, kShippedWindow),
                     .request_slot_size = slot_for(request),
                     .response_slot_size = slot_for(response)},
          .is_inline = plan.tuning.is_inline};
}

}  // namespace

std::unique_ptr<ServerNode> make_egret_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<LaneServer>(plan, self, fabric, shape_of(plan));
}

std::unique_ptr<ClientNode> make_egret_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<LaneClient>(plan, self, fabric, shape_of(plan));
}

}  // namespace egret::bench_paradigms
