#include "bench_paradigms/stores/exposed_server.h"

#include "bench_paradigms/notice.h"
#include "bench_paradigms/rpc/kv_message.h"

namespace egret::bench_paradigms {

using base::Status;

ExposedServer::ExposedServer(const Plan& plan, NodeId self, Fabric& fabric, const std::optional<RpcShape>& calls)
    : plan_(plan), self_(self), fabric_(fabric), pairs_(plan.nodes()) {
  if (calls) rpc_.emplace(plan, self, fabric, *calls);
}

uint32_t ExposedServer::keys() const {
  uint32_t count = 0;
  for (uint32_t number = 0; number < plan_.keys->count(); ++number) {
    if (partition_of(plan_, plan_.keys->key(number)) == self_) ++count;
  }
  return count;
}

Status ExposedServer::prepare() {
  if (Status done = make_store(); !done.is_ok()) return done;
  auto queue = fabric_.make_queue(1);
  if (!queue) return queue.status();
  queue_ = std::move(queue.value());
  for (NodeId to = plan_.servers; to < plan_.nodes(); ++to) {
    auto pair = fabric_.make_pair({.send_queue = queue_.get(), .receive_queue = queue_.get(), .sends = 1});
    if (!pair) return pair.status();
    pairs_[to] = std::move(pair.value());
  }
  return rpc_ ? rpc_->prepare() : Status::ok();
}

std::string ExposedServer::notice(NodeId to) {
  if (plan_.is_server(to)) return {};
  const std::string of_store = layout();
  const ExposedNotice head{pairs_[to]->number(), static_cast<uint32_t>(of_store.size())};
  return to_notice(head) + of_store + (rpc_ ? rpc_->notice(to) : std::string());
}

Status ExposedServer::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  if (plan_.is_server(from)) return Status::ok();
  uint32_t pair = 0;
  if (!read_notice(notice.substr(0, sizeof pair), pair)) return Status::error(kStrangeNotice);
  if (Status done = pairs_[from]->join(address, pair); !done.is_ok()) return done;
  return rpc_ ? rpc_->join(from, address, notice.substr(sizeof pair)) : Status::ok();
}

Status ExposedServer::load() {
  std::string value(plan_.value_bytes, '\0');
  for (uint32_t number = 0; number < plan_.keys->count(); ++number) {
    const std::string_view key = plan_.keys->key(number);
    if (partition_of(plan_, key) != self_) continue;
    bench::write_value(value.data(), value.size(), number, kLoadedVersion);
    if (change(OpKind::kPut, key, value) != Outcome::kDone) return Status::error("the store has no room for all keys");
  }
  return Status::ok();
}

bool ExposedServer::serve() {
  return rpc_ && rpc_->serve(*this);
}

uint32_t ExposedServer::handle(NodeId /*from*/, Bytes body, std::span<std::byte> response) {
  const auto request = read_kv_request(body);
  Outcome outcome = Outcome::kFailed;
  const bool is_change = request && (request->kind == OpKind::kPut || request->kind == OpKind::kErase);
  const bool is_whole = is_change && request->key.size() == plan_.key_bytes &&
                        (request->kind == OpKind::kErase || request->value.size() == plan_.value_bytes);
  if (is_whole) outcome = change(request->kind, request->key, request->value);
  return write_kv_response(response, outcome);
}

}  // namespace egret::bench_paradigms
