// nessie-sd: NessieSD, the server-driven design that paper 003 compares Nessie with (section 5; figures 7 and 11): the
// same cuckoo table, but a server core reads and changes it. Requests and responses are WRITEs over RC, none inline.
//
//   client                              the core whose key it is
//     WRITE request ──────────────────▶ slot, polled; words by rank, filter bits, entry (stores/cas/cuckoo_store.h)
//     reply slot ◀──────────────── WRITE response
//
//   client of the core's own node
//     request ──── stored, no verb ───▶ mailbox, polled       --own-node: core s and each client i with i mod cores = s
//     response ◀── stored, no verb ────                       are one node, if they are in one process
//
// An index word refers to entries of its own node only. Paper 003's nodes have both cores and clients; here clients are
// hosts of their own unless --own-node says so.
//
// Relies on WRITEs that are placed in rising order, or in falling order, as reply does (W).
#include <algorithm>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/rpc/mailbox.h"
#include "bench_paradigms/stores/cas/cuckoo_store.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

RpcShape shape_of(const Plan& plan) {
  RpcShape shape = kv_shape(plan, RequestHalf::kWriteSlot, ResponseHalf::kWrite);
  shape.allows_inline = false;
  return shape;
}

bool is_own_node(const Plan& plan, NodeId core, NodeId client) {
  return plan.tuning.has_own_node && (client - plan.servers) % plan.servers == core;
}

class Server final : public ServerNode, private RpcHandler {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan), self_(self), store_(plan, keys_of(plan, self)), rpc_(plan, self, fabric, shape_of(plan)) {}

  Status prepare() override { return rpc_.prepare(); }
  std::string notice(NodeId to) override {
    if (plan_.is_server(to)) return {};
    uint64_t offered = 0;
    if (is_own_node(plan_, self_, to)) {
      own_.push_back({to, std::make_shared<Mailbox>(shape_of(plan_))});
      offered = offer_mailbox(own_.back().mailbox);
    }
    return to_notice(offered) + rpc_.notice(to);
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  Status load() override { return load_partition(plan_, self_, store_, false); }
  bool serve() override {
    bool has_served = rpc_.serve(*this);
    for (const Own& own : own_) has_served = own.mailbox->serve(own.client, *this) > 0 || has_served;
    return has_served;
  }

 private:
  struct Own {
    NodeId client;
    std::shared_ptr<Mailbox> mailbox;
  };
  uint32_t handle(NodeId /*from*/, Bytes request, std::span<std::byte> response) override {
    const auto op = read_kv_request(request);
    return op ? execute_kv(store_, *op, response) : write_kv_response(response, Outcome::kFull);
  }
  void prefetch(Bytes request) override {
    if (const auto op = read_kv_request(request)) store_.prefetch(op->key);
  }

  const Plan& plan_;
  NodeId self_;
  CuckooStore store_;
  RpcServer rpc_;
  std::vector<Own> own_;
};

class Client final : public ClientNode {
 public:
  Client(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan),
        self_(self),
        remote_(plan, self, fabric, shape_of(plan)),
        request_(shape_of(plan).request_bytes),
        replies_(plan.window) {}

  Status prepare() override { return remote_.prepare(); }
  std::string notice(NodeId to) override { return remote_.notice(to); }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    uint64_t offered = 0;
    if (!plan_.is_server(from)) return Status::ok();
    if (!read_notice(notice.substr(0, sizeof offered), offered)) return Status::error(kStrangeNotice);
    if (is_own_node(plan_, from, self_)) own_ = find_mailbox(offered);
    return remote_.join(from, address, notice.substr(sizeof offered));
  }
  bool begin(const Op& op) override {
    if (op.kind == OpKind::kNext) return false;
    if (own_ == nullptr || !is_own_node(plan_, partition_of(plan_, op.key), self_)) return remote_.begin(op);
    const uint32_t bytes = write_kv_request(request_, {op.kind, op.key, op.value});
    return own_->ask(Bytes(request_).first(bytes), op.ticket);
  }
  uint32_t poll(std::span<Result> out) override {
    uint32_t found = 0;
    if (own_ != nullptr) {
      const auto replies = std::span(replies_).first(std::min(out.size(), replies_.size()));
      found = own_->take(replies);
      std::transform(replies.begin(), replies.begin() + found, out.begin(), to_result);
    }
    return found + remote_.poll(out.subspan(found));
  }
  Trouble trouble() const override { return remote_.trouble(); }

 private:
  const Plan& plan_;
  NodeId self_;
  KvClient remote_;
  std::shared_ptr<Mailbox> own_;  // to the core of the own node; null: that is in another process, or there is none
  std::vector<std::byte> request_;
  std::vector<Reply> replies_;
};

}  // namespace

std::unique_ptr<ServerNode> make_nessie_sd_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric);
}

std::unique_ptr<ClientNode> make_nessie_sd_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Client>(plan, self, fabric);
}

}  // namespace egret::bench_paradigms
