// The server's half of a system whose clients READ its store: pairs over which they do, the RPC engine for what they cannot
// do themselves, and one handler that changes the store. What a system has of its own: the store, and what it tells of it.
//
//   notice to a client:  │ pair 4 │ layout's size 4 │ layout: the store's memory and shape │ the RPC engine's │
//
// One server core's; see node.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench_paradigms/node.h"
#include "bench_paradigms/rpc/server.h"

namespace egret::bench_paradigms {

// Before layout and the RPC engine's part.
struct ExposedNotice {
  uint32_t pair = 0;
  uint32_t layout_bytes = 0;
};

class ExposedServer : public ServerNode, private RpcHandler {
 public:
  // Without `calls`, there is nothing that clients call the server for.
  ExposedServer(const Plan& plan, NodeId self, Fabric& fabric, const std::optional<RpcShape>& calls);

  base::Status prepare() final;
  std::string notice(NodeId to) final;
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) final;
  base::Status load() override;
  bool serve() override;

 protected:
  virtual base::Status make_store() = 0;
  virtual std::string layout() const = 0;
  virtual Outcome change(OpKind kind, std::string_view key, std::string_view value) = 0;

  base::Expected<std::unique_ptr<Memory>> make_memory(size_t bytes, uint8_t rights) {
    return fabric_.make_memory(bytes, rights);
  }
  uint32_t keys() const;  // of this server
  const Plan& plan() const { return plan_; }
  NodeId self() const { return self_; }

 private:
  uint32_t handle(NodeId from, Bytes request, std::span<std::byte> response) final;

  const Plan& plan_;
  NodeId self_;
  Fabric& fabric_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::unique_ptr<Pair>> pairs_;  // by node; go before their queue
  std::optional<RpcServer> rpc_;
};

}  // namespace egret::bench_paradigms
