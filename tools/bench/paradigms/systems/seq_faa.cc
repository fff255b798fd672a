// seq-faa: a sequencer without a CPU: clients FETCH_ADD the counter (paper 002, section 4.2.3 and table 3).
//
//   client                       server core 0's memory
//     FETCH_ADD 1 ─────────────▶ counter, 8 bytes, aligned
//     ◀──── the value before it
//
// Relies on nothing that the verbs do not promise: all additions are one device's, and the CPU never stores into the
// counter.
#include <cstring>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/stores/exposed_server.h"
#include "bench_paradigms/stores/probing_client.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

class Server final : public ExposedServer {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric) : ExposedServer(plan, self, fabric, std::nullopt) {}

  Status load() override { return Status::ok(); }

 private:
  Status make_store() override {
    auto counter = make_memory(sizeof(uint64_t), kRemoteAtomic);
    if (!counter) return counter.status();
    counter_ = std::move(counter.value());
    return Status::ok();
  }
  std::string layout() const override { return to_notice(counter_->remote()); }
  Outcome change(OpKind /*kind*/, std::string_view /*key*/, std::string_view /*value*/) override {
    return Outcome::kFull;
  }

  std::unique_ptr<Memory> counter_;
};

class Rule final : public ProbeRule {
 public:
  bool has(OpKind kind) const override { return kind == OpKind::kNext; }
  NodeId server_of(const Op& /*op*/) const override { return 0; }
  uint32_t landing_bytes() const override { return sizeof(uint64_t); }
  Status told(NodeId server, std::string_view layout) override {
    RemoteMemory counter;
    if (!read_notice(layout, counter)) return Status::error(kStrangeNotice);
    if (server == 0) counter_ = counter;
    return Status::ok();
  }
  Next follow(Probe& probe, ProbeWorks& works) override {
    if (probe.stage++ == 0) return works.fetch_add(counter_, 0, 1, probe.landing) ? Next::kPost : Next::kLost;
    probe.found = {reinterpret_cast<const char*>(probe.landing), sizeof(uint64_t)};
    return Next::kHit;
  }

 private:
  RemoteMemory counter_;
};

}  // namespace

std::unique_ptr<ServerNode> make_seq_faa_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric);
}
std::unique_ptr<ClientNode> make_seq_faa_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(), std::nullopt);
}

}  // namespace egret::bench_paradigms
