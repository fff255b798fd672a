#include "bench_paradigms/lanes/lane_server.h"

#include "bench/sampler.h"
#include "bench_paradigms/notice.h"
#include "bench_paradigms/rpc/kv_nodes.h"
#include "wire/handshake.h"

namespace egret::bench_paradigms {

using base::Status;
using op::ResultCode;

const base::Clock& clock_of(const Plan& plan) {
  static const base::SystemClock system;
  return plan.clock != nullptr ? *plan.clock : system;
}

LaneServer::LaneServer(const Plan& plan, NodeId self, Fabric& fabric, const LaneShape& shape)
    : plan_(plan),
      self_(self),
      fabric_(fabric),
      shape_(shape),
      store_(keys_of(plan, self), plan.key_bytes, plan.value_bytes, plan.tuning.has_huge_pages),
      value_(plan.value_bytes),
      poller_(rpc::PollerOptions{}, clock_of(plan), *this, *this) {}

Status LaneServer::prepare() {
  if (Status good = shape_.check(); !good) return good;
  const EndSpec spec = shape_.end();
  for (uint32_t client = 0; client < plan_.clients; ++client) {
    ends_.push_back(std::make_unique<FabricServerEnd>(fabric_, spec));
    if (Status made = ends_.back()->create_region(spec.shape); !made) return made;
  }
  return Status::ok();
}

// Seeds a session's checksums. Of the plan's seed, so that a run can be repeated.
uint64_t LaneServer::nonce(NodeId client) const {
  return bench::mix64(plan_.seed ^ bench::mix64(uint64_t{self_} << 32 | client));
}

std::string LaneServer::notice(NodeId to) {
  if (plan_.is_server(to)) return {};
  const auto frame = encode(
      wire::Grant{.session_id = to, .nonce = nonce(to), .item_size_max = plan_.value_bytes, .layout = shape_.layout});
  return to_notice(end(to).told()) + std::string(reinterpret_cast<const char*>(frame.data()), frame.size());
}

Status LaneServer::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  if (plan_.is_server(from)) return Status::ok();
  ClientTold told;
  if (!read_notice(notice, told)) return Status::error(kStrangeNotice);
  if (Status joined = end(from).join(address, told); !joined) return joined;
  poller_.attach({.session_id = from,
                  .endpoint = &end(from),
                  .layout = shape_.layout,
                  .seal = {.nonce = nonce(from), .heads_only = false},
                  .user = from});
  return Status::ok();
}

Status LaneServer::load() {
  return load_partition(plan_, self_, store_, false);
}

bool LaneServer::serve() {
  for (const auto& each : ends_) each->poll({});
  const bool has_served = poller_.poll() > 0;
  if (poller_.has_broken_sessions()) {
    for (const rpc::BrokenSession& each : poller_.take_broken_sessions()) poller_.detach(each.session_id);
  }
  return has_served;
}

void LaneServer::foresee(std::span<op::Op> ops) {
  for (const op::Op& each : ops) store_.prefetch(each.key);
}

op::Result LaneServer::execute(size_t index) {
  const op::Op& op = ops_[index];
  op::Result result;
  switch (op.code) {
    case op::OpCode::kGet: {
      const auto size = store_.get(op.key, value_);
      result.code = size ? ResultCode::kHit : ResultCode::kMiss;
      result.total_length = size.value_or(0);
      result.value = {reinterpret_cast<const char*>(value_.data()), result.total_length};
      break;
    }
    case op::OpCode::kSet:
      result.code = store_.put(op.key, op.value) ? ResultCode::kStored : ResultCode::kOutOfMemory;
      break;
    case op::OpCode::kDelete:
      result.code = store_.erase(op.key) ? ResultCode::kDeleted : ResultCode::kMiss;
      break;
    default:
      result.code = ResultCode::kUnsupported;
  }
  return result;
}

}  // namespace egret::bench_paradigms
