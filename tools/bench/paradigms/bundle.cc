#include "bench_paradigms/bundle.h"

#include <string>
#include <vector>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/process_shared.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

// The paradigm's plan, and which of its nodes a node of the harness stands for.
class Bundling {
 public:
  explicit Bundling(const Plan& plan)
      : plan_(plan), size_(plan.tuning.queue_pairs), inner_(shared_by_servers<Plan>(plan, [&plan] {
          auto inner = std::make_shared<Plan>(plan);
          inner->clients = plan.clients * plan.tuning.queue_pairs;
          inner->tuning.queue_pairs = 1;
          return inner;
        })) {}

  const Plan& inner() const { return *inner_; }
  uint32_t nodes() const { return plan_.nodes(); }
  uint32_t count(NodeId outer) const { return plan_.is_server(outer) ? 1 : size_; }
  NodeId first(NodeId outer) const {
    return plan_.is_server(outer) ? outer : plan_.servers + (outer - plan_.servers) * size_;
  }

 private:
  const Plan& plan_;
  uint32_t size_;
  std::shared_ptr<Plan> inner_;
};

void add_text(std::string& to, const std::string& text) {
  to += to_notice(static_cast<uint32_t>(text.size())) + text;
}

// The next of several texts; false: there is none.
bool take_text(std::string_view& from, std::string_view& text) {
  uint32_t size = 0;
  if (!read_notice(from.substr(0, sizeof size), size) || size > from.size() - sizeof size) return false;
  text = from.substr(sizeof size, size);
  from.remove_prefix(sizeof size + size);
  return true;
}

class BundledServer final : public ServerNode {
 public:
  BundledServer(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric)
      : bundling_(plan), node_(make_server(paradigm, bundling_.inner(), self, fabric)) {}

  Status prepare() override { return node_->prepare(); }
  std::string notice(NodeId to) override {
    std::string out;
    for (uint32_t i = 0; i < bundling_.count(to); ++i) add_text(out, node_->notice(bundling_.first(to) + i));
    return out;
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    for (uint32_t i = 0; i < bundling_.count(from); ++i) {
      std::string_view told;
      if (!take_text(notice, told)) return Status::error(kStrangeNotice);
      if (Status done = node_->join(bundling_.first(from) + i, address, told); !done) return done;
    }
    return Status::ok();
  }
  Status load() override { return node_->load(); }
  bool serve() override { return node_->serve(); }
  uint32_t walk(std::string_view key) const override { return node_->walk(key); }
  uint32_t walk_of(NodeId client, std::string_view key) const override {
    return node_->walk_of(bundling_.first(client), key);
  }
  Trouble trouble() const override { return node_->trouble(); }

 private:
  Bundling bundling_;
  std::unique_ptr<ServerNode> node_;
};

class BundledClient final : public ClientNode {
 public:
  BundledClient(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric)
      : bundling_(plan), self_(self), address_(fabric.address()) {
    for (uint32_t i = 0; i < bundling_.count(self); ++i) {
      clients_.push_back(make_client(paradigm, bundling_.inner(), bundling_.first(self) + i, fabric));
    }
  }

  Status prepare() override {
    for (const auto& client : clients_) {
      if (Status done = client->prepare(); !done) return done;
    }
    return Status::ok();
  }
  std::string notice(NodeId to) override {
    std::string out;
    for (const auto& client : clients_) {
      for (uint32_t i = 0; i < bundling_.count(to); ++i) add_text(out, client->notice(bundling_.first(to) + i));
    }
    return out;
  }
  // The paradigm's nodes are told in their order: those of this thread have their place among them.
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    if (from > self_) {
      if (Status done = join_each_other(); !done) return done;
    }
    if (Status done = join_all(from, address, notice); !done) return done;
    return from + 2 == bundling_.nodes() && self_ == from + 1 ? join_each_other() : Status::ok();
  }
  Status load() override {
    for (const auto& client : clients_) {
      if (Status done = client->load(); !done) return done;
    }
    return Status::ok();
  }
  bool begin(const Op& op) override {
    for (size_t tries = 0; tries < clients_.size(); ++tries) {
      if (clients_[turn_++ % clients_.size()]->begin(op)) return true;
    }
    return false;
  }
  uint32_t poll(std::span<Result> out) override {
    uint32_t found = 0;
    for (const auto& client : clients_) found += client->poll(out.subspan(found));
    return found;
  }
  Trouble trouble() const override {
    Trouble sum;
    for (const auto& client : clients_) sum += client->trouble();
    return sum;
  }

 private:
  // A server has told each of these something; another client thread's, each of its for each of these.
  Status join_all(NodeId from, const NodeAddress& address, std::string_view notice) {
    for (uint32_t i = 0; i < bundling_.count(from); ++i) {
      for (const auto& client : clients_) {
        std::string_view told;
        if (!take_text(notice, told)) return Status::error(kStrangeNotice);
        if (Status done = client->join(bundling_.first(from) + i, address, told); !done) return done;
      }
    }
    return Status::ok();
  }
  Status join_each_other() {
    if (has_joined_) return Status::ok();
    has_joined_ = true;
    const NodeId first = bundling_.first(self_);
    for (uint32_t from = 0; from < clients_.size(); ++from) {
      for (uint32_t to = 0; to < clients_.size(); ++to) {
        if (from == to) continue;
        const std::string told = clients_[from]->notice(first + to);
        if (Status done = clients_[to]->join(first + from, address_, told); !done) return done;
      }
    }
    return Status::ok();
  }

  Bundling bundling_;
  NodeId self_;
  NodeAddress address_;
  bool has_joined_ = false;
  std::vector<std::unique_ptr<ClientNode>> clients_;
  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<ServerNode> make_bundled_server(const Paradigm& paradigm, const Plan& plan, NodeId self,
                                                Fabric& fabric) {
  return std::make_unique<BundledServer>(paradigm, plan, self, fabric);
}

std::unique_ptr<ClientNode> make_bundled_client(const Paradigm& paradigm, const Plan& plan, NodeId self,
                                                Fabric& fabric) {
  return std::make_unique<BundledClient>(paradigm, plan, self, fabric);
}

}  // namespace egret::bench_paradigms
