// The client's half of a system whose clients READ the server's store: a probe walker, and the RPC engine for what the
// rule leaves to the server.
//
//   begin ─▶ walker ─ kCall ─▶ RPC engine ─ answer ─▶ walker (the rule) ─▶ poll
//              └ READs, atomics, WRITEs of its rule ────────────────────▲
//
// One client thread's; see node.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench_paradigms/node.h"
#include "bench_paradigms/rpc/client.h"
#include "bench_paradigms/stores/probe_walker.h"

namespace egret::bench_paradigms {

class ProbingClient final : public ClientNode {
 public:
  ProbingClient(const Plan& plan, NodeId self, Fabric& fabric, std::unique_ptr<ProbeRule> rule,
                const std::optional<RpcShape>& calls);

  base::Status prepare() override;
  std::string notice(NodeId to) override;
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override;
  bool begin(const Op& op) override;
  uint32_t poll(std::span<Result> out) override;
  Trouble trouble() const override;

 private:
  bool call(uint32_t slot);
  void call_again();
  void take_replies();

  const Plan& plan_;
  std::unique_ptr<ProbeRule> rule_;
  ProbeWalker walker_;
  std::optional<RpcClient> rpc_;
  std::vector<std::byte> request_;
};

// A put or an erase of the plan's keys as a request, its outcome as a response.
RpcShape calls_of(const Plan& plan, RequestHalf request, ResponseHalf response, PairType pairs);

}  // namespace egret::bench_paradigms
