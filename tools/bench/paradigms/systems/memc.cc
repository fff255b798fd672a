// memc: RDMA-Memcached of OSU, as paper 000 (section 6) and paper 004 (section V) tell of it: SENDs with messages, and
// large values moved by the server, beside them. Its threads share one table and one LRU list, behind a lock.
//
//   client                                server core, any
//     SEND get, put ────────────────────▶ RECV ─▶ the shared store
//     ◀──────────────────────────────── SEND result
//   values of more than 4 KiB:
//     SEND get, where its buffer is ────▶
//     buffer ◀───────────────────────── WRITE of the value, then SEND
//     SEND put, where its buffer is ────▶
//     buffer ─────────────────────────▶ READ of the value, then executes, SEND
//
// A client stays with one core, as a connection stays with its thread. Relies on nothing: completions say what is there.
#include <algorithm>
#include <cstring>

#include "bench_paradigms/process_shared.h"
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/stores/shared_store.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr uint32_t kMostInMessage = 4096;  // of a value; the paper does not say

// Precedes a request for a large value: the client's memory for it.
struct Buffer {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t bytes = 0;
};

bool is_large(const Plan& plan) {
  return plan.value_bytes > kMostInMessage;
}

RpcShape shape_of(const Plan& plan) {
  RpcShape shape = kv_shape(plan, RequestHalf::kSend, ResponseHalf::kSend);
  if (!is_large(plan)) return shape;
  shape.request_bytes = sizeof(Buffer) + kv_request_bytes(plan.key_bytes, 0);
  shape.response_bytes = kv_response_bytes(0);
  return shape;
}

class Server final : public ServerNode, private RpcHandler {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan), self_(self), fabric_(fabric), rpc_(plan, self, fabric, shape_of(plan)) {
    store_ = shared_by_servers<SharedStore>(plan, [&] {
      return std::make_shared<SharedStore>(plan.keys->count(), plan.key_bytes, plan.value_bytes,
                                           plan.tuning.has_huge_pages);
    });
  }

  Status prepare() override {
    if (is_large(plan_)) {
      const size_t places = size_t{plan_.clients} * plan_.window;
      if (places >= 0xffff) return Status::error("too many calls under way for large values");
      auto staging = fabric_.make_memory(places * plan_.value_bytes, kNoRights);
      if (!staging) return staging.status();
      staging_ = std::move(staging.value());
      reading_.resize(places);
    }
    return rpc_.prepare();
  }
  std::string notice(NodeId to) override { return rpc_.notice(to); }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  Status load() override { return load_partition(plan_, self_, *store_, false); }
  bool serve() override { return rpc_.serve(*this); }

 private:
  // A put whose value is being READ.
  struct Reading {
    CallId call;
    std::string_view key;  // in the request, which stays until it is answered
  };

  uint32_t handle(NodeId from, Bytes request, std::span<std::byte> response) override {
    if (!is_large(plan_)) {
      const auto op = read_kv_request(request);
      return op ? execute_kv(*store_, *op, response) : write_kv_response(response, Outcome::kFull);
    }
    Buffer buffer;
    if (request.size() < sizeof buffer) return write_kv_response(response, Outcome::kFull);
    std::memcpy(&buffer, request.data(), sizeof buffer);
    const auto op = read_kv_request(request.subspan(sizeof buffer));
    if (!op || buffer.bytes != plan_.value_bytes) return write_kv_response(response, Outcome::kFull);
    if (op->kind == OpKind::kErase) return execute_kv(*store_, *op, response);
    const uint32_t place = (from - plan_.servers) * plan_.window + rpc_.current().label.slot;
    Work work;
    work.local = staging_->data() + size_t{place} * plan_.value_bytes;
    work.memory = staging_.get();
    work.bytes = plan_.value_bytes;
    work.remote_address = buffer.address;
    work.remote_key = buffer.key;
    if (op->kind == OpKind::kPut) {
      work.verb = Verb::kRead;
      reading_[place] = {rpc_.current(), op->key};
      return rpc_.post(from, work, static_cast<uint16_t>(place + 1)) ? kLater
                                                                     : write_kv_response(response, Outcome::kFull);
    }
    const auto size = store_->get(op->key, {work.local, plan_.value_bytes});
    if (!size) return write_kv_response(response, Outcome::kMiss);
    work.verb = Verb::kWrite;
    work.bytes = *size;
    return write_kv_response(response, rpc_.post(from, work, 0) ? Outcome::kDone : Outcome::kFull);
  }
  // The value of a put is here.
  void posted(uint16_t user, bool is_ok) override {
    if (!is_ok) return;
    const Reading& put = reading_[user - 1];
    const auto* const value = reinterpret_cast<const char*>(staging_->data()) + size_t{user - 1u} * plan_.value_bytes;
    const bool is_in = store_->put(put.key, {value, plan_.value_bytes});
    rpc_.answer(put.call, write_kv_response(rpc_.response(put.call), is_in ? Outcome::kDone : Outcome::kFull));
  }

  const Plan& plan_;
  NodeId self_;
  Fabric& fabric_;
  std::shared_ptr<SharedStore> store_;
  std::unique_ptr<Memory> staging_;  // a value for each client's slot
  std::vector<Reading> reading_;
  RpcServer rpc_;  // its pairs go first
};

class Client final : public ClientNode {
 public:
  Client(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan),
        server_((self - plan.servers) % plan.servers),
        fabric_(fabric),
        request_(shape_of(plan).request_bytes),
        replies_(plan.window),
        going_(plan.window),
        rpc_(plan, self, fabric, shape_of(plan)) {
    for (uint32_t i = 0; i < plan.window; ++i) free_.push_back(i);
    given_.reserve(plan.window);
  }

  Status prepare() override {
    if (is_large(plan_)) {
      // Memory for each direction: what is got is written into one, what is put is read from the other.
      auto got = fabric_.make_memory(size_t{plan_.window} * plan_.value_bytes, kRemoteWrite);
      if (!got) return got.status();
      got_ = std::move(got.value());
      auto put = fabric_.make_memory(size_t{plan_.window} * plan_.value_bytes, kRemoteRead);
      if (!put) return put.status();
      put_ = std::move(put.value());
    }
    return rpc_.prepare();
  }
  std::string notice(NodeId to) override { return rpc_.notice(to); }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  bool begin(const Op& op) override {
    take_back();
    if (op.kind == OpKind::kNext || free_.empty()) return false;
    const uint32_t place = free_.back();
    uint32_t head = 0;
    KvRequest request{op.kind, op.key, op.value};
    if (is_large(plan_)) {
      const Memory& memory = op.kind == OpKind::kPut ? *put_ : *got_;
      const size_t at = size_t{place} * plan_.value_bytes;
      const Buffer buffer{memory.remote().address + at, memory.remote().key, plan_.value_bytes};
      std::memcpy(request_.data(), &buffer, sizeof buffer);
      head = sizeof buffer;
      if (op.kind == OpKind::kPut) std::memcpy(put_->data() + at, op.value.data(), op.value.size());
      request.value = {};
    }
    const uint32_t bytes = head + write_kv_request(std::span(request_).subspan(head), request);
    if (!rpc_.call(server_, Bytes(request_).first(bytes), place)) return false;
    free_.pop_back();
    going_[place] = {op.ticket, op.kind};
    return true;
  }
  uint32_t poll(std::span<Result> out) override {
    take_back();
    const auto replies = std::span(replies_).first(std::min(out.size(), replies_.size()));
    const uint32_t found = rpc_.poll(replies);
    for (uint32_t i = 0; i < found; ++i) {
      const auto place = static_cast<uint32_t>(replies[i].ticket);
      out[i] = to_result(replies[i]);
      out[i].ticket = going_[place].ticket;
      if (is_large(plan_) && going_[place].kind == OpKind::kGet && out[i].outcome == Outcome::kDone) {
        const auto* const value = reinterpret_cast<const char*>(got_->data()) + size_t{place} * plan_.value_bytes;
        out[i].outcome = Outcome::kHit;
        out[i].value = {value, plan_.value_bytes};
      }
      given_.push_back(place);
    }
    return found;
  }
  Trouble trouble() const override { return rpc_.trouble(); }

 private:
  struct Going {
    uint64_t ticket = 0;
    OpKind kind = OpKind::kGet;
  };
  void take_back() {
    free_.insert(free_.end(), given_.begin(), given_.end());
    given_.clear();
  }

  const Plan& plan_;
  NodeId server_;
  Fabric& fabric_;
  std::unique_ptr<Memory> got_, put_;
  std::vector<std::byte> request_;
  std::vector<Reply> replies_;
  std::vector<Going> going_;
  std::vector<uint32_t> free_, given_;
  RpcClient rpc_;
};

}  // namespace

std::unique_ptr<ServerNode> make_memc_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric);
}

std::unique_ptr<ClientNode> make_memc_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Client>(plan, self, fabric);
}

}  // namespace egret::bench_paradigms
