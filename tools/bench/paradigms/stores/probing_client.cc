#include "bench_paradigms/stores/probing_client.h"

#include <array>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/rpc/kv_message.h"
#include "bench_paradigms/stores/exposed_server.h"

namespace egret::bench_paradigms {

using base::Status;

RpcShape calls_of(const Plan& plan, RequestHalf request, ResponseHalf response, PairType pairs) {
  RpcShape shape;
  shape.request = request;
  shape.response = response;
  shape.request_pairs = pairs;
  shape.request_bytes = kv_request_bytes(plan.key_bytes, plan.value_bytes);
  shape.response_bytes = kv_response_bytes(0);
  shape.slots = plan.window;
  return shape;
}

ProbingClient::ProbingClient(const Plan& plan, NodeId self, Fabric& fabric, std::unique_ptr<ProbeRule> rule,
                             const std::optional<RpcShape>& calls)
    : plan_(plan), rule_(std::move(rule)), walker_(plan, fabric, *rule_) {
  if (!calls) return;
  rpc_.emplace(plan, self, fabric, *calls);
  request_.resize(calls->request_bytes);
}

Status ProbingClient::prepare() {
  if (Status done = walker_.prepare(); !done.is_ok()) return done;
  return rpc_ ? rpc_->prepare() : Status::ok();
}

std::string ProbingClient::notice(NodeId to) {
  if (!plan_.is_server(to)) return {};
  return to_notice(walker_.pair_to(to)) + (rpc_ ? rpc_->notice(to) : std::string());
}

Status ProbingClient::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  if (!plan_.is_server(from)) return Status::ok();
  ExposedNotice head;
  if (!read_notice(notice.substr(0, sizeof head), head)) return Status::error(kStrangeNotice);
  notice.remove_prefix(sizeof head);
  if (head.layout_bytes > notice.size()) return Status::error(kStrangeNotice);
  if (Status done = rule_->told(from, notice.substr(0, head.layout_bytes)); !done.is_ok()) return done;
  if (Status done = walker_.join(from, address, head.pair); !done.is_ok()) return done;
  return rpc_ ? rpc_->join(from, address, notice.substr(head.layout_bytes)) : Status::ok();
}

bool ProbingClient::begin(const Op& op) {
  if (!rule_->has(op.kind)) return false;
  const uint32_t slot = walker_.begin(op, rule_->server_of(op));
  if (slot == ProbeWalker::kNone) return false;
  uint32_t calling = 0;
  if (!walker_.take_call(calling)) return true;
  if (call(calling)) return true;
  if (calling != slot) {
    walker_.put_back(calling);
    return true;
  }
  walker_.forget(slot);
  return false;
}

bool ProbingClient::call(uint32_t slot) {
  const Probe& probe = walker_.probe(slot);
  const uint32_t bytes = write_kv_request(request_, {.kind = probe.kind, .key = probe.key, .value = probe.value});
  return rpc_->call(probe.server, Bytes(request_).first(bytes), slot);
}

void ProbingClient::call_again() {
  uint32_t slot = 0;
  while (walker_.take_call(slot)) {
    if (!call(slot)) return walker_.put_back(slot);
  }
}

void ProbingClient::take_replies() {
  std::array<Reply, 16> replies;
  const uint32_t count = rpc_->poll(replies);
  for (uint32_t i = 0; i < count; ++i) {
    const Reply& reply = replies[i];
    const auto slot = static_cast<uint32_t>(reply.ticket);
    const auto response = read_kv_response(reply.response);
    if (reply.state == ReplyState::kAnswered && response) {
      walker_.answered(slot, response->outcome);
    } else {
      walker_.end(slot, reply.state == ReplyState::kLost ? Outcome::kLost : Outcome::kFailed);
    }
  }
}

uint32_t ProbingClient::poll(std::span<Result> out) {
  if (rpc_) {
    take_replies();
    call_again();
  }
  return walker_.poll(out);
}

Trouble ProbingClient::trouble() const {
  Trouble sum = rule_->trouble();
  if (!rpc_) return sum;
  const Trouble of_calls = rpc_->trouble();
  sum.retries += of_calls.retries;
  sum.vain += of_calls.vain;
  sum.stuck += of_calls.stuck;
  return sum;
}

}  // namespace egret::bench_paradigms
