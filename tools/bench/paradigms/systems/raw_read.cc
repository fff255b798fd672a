// raw-read: what one READ costs and nothing else (paper 003 calls it CD; paper 002's bound for designs that READ). The
// client knows where every value is.
//
//   client                          server's memory: value 0, value 1, …
//     READ value n  ───────────────▶
//     ◀─────────────── value_bytes
//
// Relies on nothing: nothing is ever written.
#include <algorithm>
#include <vector>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

// Told to every client.
struct Notice {
  RemoteMemory values;
  uint32_t pair = 0;
  uint32_t unused = 0;
};

class Server final : public ServerNode {
 public:
  Server(const Plan& plan, Fabric& fabric) : plan_(plan), fabric_(fabric), pairs_(plan.nodes()) {}

  Status prepare() override {
    auto values = fabric_.make_memory(size_t{plan_.keys->count()} * plan_.value_bytes, kRemoteRead);
    if (!values) return values.status();
    values_ = std::move(values.value());
    auto queue = fabric_.make_queue(1);
    if (!queue) return queue.status();
    queue_ = std::move(queue.value());
    for (NodeId to = plan_.servers; to < plan_.nodes(); ++to) {
      auto pair = fabric_.make_pair({.send_queue = queue_.get(), .receive_queue = queue_.get(), .sends = 1});
      if (!pair) return pair.status();
      pairs_[to] = std::move(pair.value());
    }
    return Status::ok();
  }
  std::string notice(NodeId to) override {
    return plan_.is_server(to) ? std::string() : to_notice(Notice{values_->remote(), pairs_[to]->number(), 0});
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    if (plan_.is_server(from)) return Status::ok();
    uint32_t pair = 0;
    if (!read_notice(notice, pair)) return Status::error(kStrangeNotice);
    return pairs_[from]->join(address, pair);
  }
  Status load() override {
    for (uint32_t key = 0; key < plan_.keys->count(); ++key) {
      auto* const to = reinterpret_cast<char*>(values_->data()) + size_t{key} * plan_.value_bytes;
      bench::write_value(to, plan_.value_bytes, key, kLoadedVersion);
    }
    return Status::ok();
  }
  bool serve() override { return false; }

 private:
  const Plan& plan_;
  Fabric& fabric_;
  std::unique_ptr<Memory> values_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::unique_ptr<Pair>> pairs_;  // by client; go before their queue
};

class Client final : public ClientNode {
 public:
  Client(const Plan& plan, Fabric& fabric) : plan_(plan), fabric_(fabric), servers_(plan.servers) {}

  Status prepare() override {
    auto landing = fabric_.make_memory(size_t{plan_.window} * plan_.value_bytes, kNoRights);
    if (!landing) return landing.status();
    landing_ = std::move(landing.value());
    auto queue = fabric_.make_queue(plan_.window * plan_.servers + 1);
    if (!queue) return queue.status();
    queue_ = std::move(queue.value());
    for (auto& server : servers_) {
      auto pair = fabric_.make_pair({.send_queue = queue_.get(), .receive_queue = queue_.get(), .sends = plan_.window});
      if (!pair) return pair.status();
      server.pair = std::move(pair.value());
    }
    for (uint32_t slot = 0; slot < plan_.window; ++slot) free_.push_back(slot);
    tickets_.resize(plan_.window);
    return Status::ok();
  }
  std::string notice(NodeId to) override {
    return plan_.is_server(to) ? to_notice(servers_[to].pair->number()) : std::string();
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    if (!plan_.is_server(from)) return Status::ok();
    Notice told;
    if (!read_notice(notice, told)) return Status::error(kStrangeNotice);
    if (told.values.bytes != size_t{plan_.keys->count()} * plan_.value_bytes) return Status::error("other keys");
    servers_[from].values = told.values;
    return servers_[from].pair->join(address, told.pair);
  }
  bool begin(const Op& op) override {
    take_back();
    if (op.kind != OpKind::kGet || free_.empty()) return false;
    Peer& server = servers_[partition_of(plan_, op.key)];
    const uint32_t slot = free_.back();
    Work work;
    work.verb = Verb::kRead;
    work.is_signalled = true;
    work.bytes = plan_.value_bytes;
    work.local = landing_->data() + size_t{slot} * plan_.value_bytes;
    work.memory = landing_.get();
    work.remote_address = server.values.address + uint64_t{op.key_number} * plan_.value_bytes;
    work.remote_key = server.values.key;
    work.tag = slot;
    if (!server.pair->post(work)) return false;
    free_.pop_back();
    tickets_[slot] = op.ticket;
    return true;
  }
  uint32_t poll(std::span<Result> out) override {
    take_back();
    Completion done[16];
    const uint32_t found = queue_->poll(std::span(done).first(std::min<size_t>(out.size(), std::size(done))));
    for (uint32_t i = 0; i < found; ++i) {
      const auto slot = static_cast<uint32_t>(done[i].tag);
      const auto* const value = reinterpret_cast<const char*>(landing_->data()) + size_t{slot} * plan_.value_bytes;
      out[i] = {tickets_[slot], done[i].is_ok ? Outcome::kHit : Outcome::kFailed, {value, plan_.value_bytes}};
      given_.push_back(slot);
    }
    return found;
  }
  Trouble trouble() const override { return {}; }

 private:
  struct Peer {
    std::unique_ptr<Pair> pair;
    RemoteMemory values;
  };
  // What the last call has given out may be written over from now on.
  void take_back() {
    free_.insert(free_.end(), given_.begin(), given_.end());
    given_.clear();
  }

  const Plan& plan_;
  Fabric& fabric_;
  std::unique_ptr<Memory> landing_;
  std::unique_ptr<Queue> queue_;
  std::vector<Peer> servers_;  // their pairs go before their queue
  std::vector<uint32_t> free_, given_;
  std::vector<uint64_t> tickets_;
};

}  // namespace

std::unique_ptr<ServerNode> make_raw_read_server(const Plan& plan, NodeId /*self*/, Fabric& fabric) {
  return std::make_unique<Server>(plan, fabric);
}

std::unique_ptr<ClientNode> make_raw_read_client(const Plan& plan, NodeId /*self*/, Fabric& fabric) {
  return std::make_unique<Client>(plan, fabric);
}

}  // namespace egret::bench_paradigms
