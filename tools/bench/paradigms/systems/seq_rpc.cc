// seq-rpc: a sequencer by HERD's calls (paper 002, section 4.2 and table 3): the cores share one counter of 8 bytes.
//
//   client                          server core
//     RECV; UC WRITE of a key ────▶ slot, polled ─▶ number = counter++
//     ◀──────────────────────── UD SEND of the number
//
// A client asks any core, each in turn. --batch-add N: a core adds for up to N requests of a pass at once, and deals the
// numbers out. Relies on what herd relies on (W, loss). As the paper a request that comes twice takes two numbers;
// by default it is answered again with its own.
#include <algorithm>
#include <atomic>

#include "bench_paradigms/process_shared.h"
#include "bench_paradigms/rpc/kv_nodes.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

struct Counter {
  alignas(64) std::atomic<uint64_t> next{0};
};

RpcShape shape_of(const Plan& plan) {
  RpcShape shape;
  shape.request = RequestHalf::kWriteSlot;
  shape.response = ResponseHalf::kDatagram;
  shape.request_pairs = PairType::kUc;
  shape.request_bytes = 2 + kHerdKey;
  shape.response_bytes = kv_response_bytes(sizeof(uint64_t));
  shape.slots = plan.window;
  return shape;
}

class Server final : public ServerNode, private RpcHandler {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan),
        counter_(shared_by_servers<Counter>(plan, [] { return std::make_shared<Counter>(); })),
        rpc_(plan, self, fabric, shape_of(plan)) {}

  base::Status prepare() override { return rpc_.prepare(); }
  std::string notice(NodeId to) override { return rpc_.notice(to); }
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  bool serve() override { return rpc_.serve(*this); }

 private:
  void begin_pass(uint32_t requests) override {
    requests_ = requests;
    owned_ = 0;
  }
  uint32_t handle(NodeId /*from*/, Bytes request, std::span<std::byte> response) override {
    const auto op = read_herd_request(request);
    if (!op || op->kind != OpKind::kNext) return write_kv_response(response, Outcome::kFull);
    if (owned_ == 0) {
      owned_ = std::clamp(requests_, 1u, std::max(plan_.tuning.batch_add, 1u));
      number_ = counter_->next.fetch_add(owned_, std::memory_order_relaxed);
      requests_ -= std::min(requests_, owned_);
    }
    --owned_;
    const uint64_t number = number_++;
    return write_kv_response(response, Outcome::kHit, {reinterpret_cast<const char*>(&number), sizeof number});
  }

  const Plan& plan_;
  std::shared_ptr<Counter> counter_;
  RpcServer rpc_;
  uint32_t requests_ = 0;  // of this pass, for which no number was taken yet
  uint32_t owned_ = 0;     // numbers taken and not given
  uint64_t number_ = 0;
};

class Client final : public ClientNode {
 public:
  Client(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan), next_server_(self), rpc_(plan, self, fabric, shape_of(plan)), replies_(plan.window) {
    std::array<char, kHerdKey> key{};
    key.fill('n');
    write_herd_request(request_, {OpKind::kNext, {key.data(), key.size()}, {}});
  }

  base::Status prepare() override { return rpc_.prepare(); }
  std::string notice(NodeId to) override { return rpc_.notice(to); }
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  bool begin(const Op& op) override {
    if (op.kind != OpKind::kNext) return false;
    return rpc_.call(next_server_++ % plan_.servers, request_, op.ticket);
  }
  uint32_t poll(std::span<Result> out) override {
    const auto replies = std::span(replies_).first(std::min(out.size(), replies_.size()));
    const uint32_t found = rpc_.poll(replies);
    std::transform(replies.begin(), replies.begin() + found, out.begin(), to_result);
    return found;
  }
  Trouble trouble() const override { return rpc_.trouble(); }

 private:
  const Plan& plan_;
  uint32_t next_server_;
  RpcClient rpc_;
  std::array<std::byte, 2 + kHerdKey> request_{};
  std::vector<Reply> replies_;
};

}  // namespace

std::unique_ptr<ServerNode> make_seq_rpc_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric);
}

std::unique_ptr<ClientNode> make_seq_rpc_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Client>(plan, self, fabric);
}

}  // namespace egret::bench_paradigms
