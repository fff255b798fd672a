#include "bench_paradigms/rpc/kv_nodes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "bench_paradigms/stores/private_store.h"

namespace egret::bench_paradigms {

using base::Status;

RpcShape kv_shape(const Plan& plan, RequestHalf request, ResponseHalf response, PairType request_pairs) {
  RpcShape shape;
  shape.request = request;
  shape.response = response;
  shape.request_pairs = request_pairs;
  shape.request_bytes =
      shape.is_right_aligned() ? plan.value_bytes + 2 + kHerdKey : kv_request_bytes(plan.key_bytes, plan.value_bytes);
  shape.response_bytes = kv_response_bytes(plan.value_bytes);
  shape.slots = plan.window;
  return shape;
}

uint32_t keys_of(const Plan& plan, NodeId self) {
  uint32_t count = 0;
  for (uint32_t key = 0; key < plan.keys->count(); ++key)
    count += partition_of(plan, plan.keys->key(key)) == self ? 1 : 0;
  return count;
}

std::unique_ptr<KvStore> private_store_for(const Plan& plan, NodeId self, const RpcShape& shape) {
  return std::make_unique<PrivateStore>(keys_of(plan, self), shape.is_right_aligned() ? kHerdKey : plan.key_bytes,
                                        plan.value_bytes, plan.tuning.has_huge_pages);
}

// --- server

KvServer::KvServer(const Plan& plan, NodeId self, Fabric& fabric, const RpcShape& shape, std::unique_ptr<KvStore> store)
    : plan_(plan),
      self_(self),
      is_right_aligned_(shape.is_right_aligned()),
      store_(std::move(store)),
      rpc_(plan, self, fabric, shape) {}

Status load_partition(const Plan& plan, NodeId self, KvStore& store, bool is_right_aligned) {
  std::string value(plan.value_bytes, '\0');
  for (uint32_t number = 0; number < plan.keys->count(); ++number) {
    const std::string_view key = plan.keys->key(number);
    if (partition_of(plan, key) != self) continue;
    bench::write_value(value.data(), value.size(), number, kLoadedVersion);
    const HerdKey aligned = herd_key(key);
    const bool is_in = store.put(is_right_aligned ? std::string_view(aligned.data(), aligned.size()) : key, value);
    if (!is_in) return Status::error("the store has too little room");
  }
  return Status::ok();
}

Status KvServer::load() {
  return load_partition(plan_, self_, *store_, is_right_aligned_);
}

std::optional<KvRequest> KvServer::parse(Bytes request) const {
  return is_right_aligned_ ? read_herd_request(request) : read_kv_request(request);
}

uint32_t KvServer::handle(NodeId /*from*/, Bytes request, std::span<std::byte> response) {
  const auto op = parse(request);
  return op ? execute_kv(*store_, *op, response) : write_kv_response(response, Outcome::kFull);
}

void KvServer::prefetch(Bytes request) {
  if (const auto op = parse(request)) store_->prefetch(op->key);
}

uint32_t execute_kv(KvStore& store, const KvRequest& request, std::span<std::byte> response) {
  switch (request.kind) {
    case OpKind::kGet:
      // The value goes where it is sent from.
      if (const auto size = store.get(request.key, response.subspan(kKvResponseHead)))
        return seal_kv_hit(response, *size);
      return write_kv_response(response, Outcome::kMiss);
    case OpKind::kPut:
      return write_kv_response(response, store.put(request.key, request.value) ? Outcome::kDone : Outcome::kFull);
    case OpKind::kErase:
      return write_kv_response(response, store.erase(request.key) ? Outcome::kDone : Outcome::kMiss);
    case OpKind::kNext:
      break;
  }
  return write_kv_response(response, Outcome::kFull);
}

// --- client

KvClient::KvClient(const Plan& plan, NodeId self, Fabric& fabric, const RpcShape& shape, Route route)
    : plan_(plan),
      self_(self),
      is_right_aligned_(shape.is_right_aligned()),
      route_(route),
      rpc_(plan, self, fabric, shape),
      request_(shape.request_bytes),
      replies_(plan.window) {}

bool KvClient::begin(const Op& op) {
  if (op.kind == OpKind::kNext) return false;
  const NodeId server =
      route_ == Route::kOfClient ? (self_ - plan_.servers) % plan_.servers : partition_of(plan_, op.key);
  uint32_t bytes = 0;
  if (is_right_aligned_) {
    const HerdKey key = herd_key(op.key);
    bytes = write_herd_request(request_, {op.kind, {key.data(), key.size()}, op.value});
  } else {
    bytes = write_kv_request(request_, {op.kind, op.key, op.value});
  }
  return rpc_.call(server, Bytes(request_).first(bytes), op.ticket);
}

Result to_result(const Reply& reply) {
  if (reply.state == ReplyState::kLost) return {reply.ticket, Outcome::kLost, {}};
  if (reply.state == ReplyState::kFailed) return {reply.ticket, Outcome::kFailed, {}};
  const auto response = read_kv_response(reply.response);
  if (!response) return {reply.ticket, Outcome::kFailed, {}};
  return {reply.ticket, response->outcome, response->value};
}

uint32_t KvClient::poll(std::span<Result> out) {
  const auto replies = std::span(replies_).first(std::min(out.size(), replies_.size()));
  const uint32_t found = rpc_.poll(replies);
  std::transform(replies.begin(), replies.begin() + found, out.begin(), to_result);
  return found;
}

}  // namespace egret::bench_paradigms
