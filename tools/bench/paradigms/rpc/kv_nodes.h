// The nodes of a paradigm in which every op is a call: a server core that executes them on a store, and a client thread
// that sends each to the core of its key.
//
//   KvClient::begin ─▶ kv_message ─▶ RpcClient ─▶ RpcServer ─▶ KvServer::handle ─▶ KvStore
#pragma once

#include <memory>
#include <vector>

#include "bench_paradigms/rpc/client.h"
#include "bench_paradigms/rpc/kv_message.h"
#include "bench_paradigms/rpc/server.h"
#include "bench_paradigms/stores/kv_store.h"

namespace egret::bench_paradigms {

// The halves, and what each op needs of them. `slots` are the plan's window.
RpcShape kv_shape(const Plan& plan, RequestHalf request, ResponseHalf response, PairType request_pairs = PairType::kRc);
// Loaded keys of this core's partition.
uint32_t keys_of(const Plan& plan, NodeId self);
// A private store for the keys of this core's partition. Right-aligned calls have keys of 16 bytes.
std::unique_ptr<KvStore> private_store_for(const Plan& plan, NodeId self, const RpcShape& shape);

class KvServer final : public ServerNode, private RpcHandler {
 public:
  KvServer(const Plan& plan, NodeId self, Fabric& fabric, const RpcShape& shape, std::unique_ptr<KvStore> store);

  base::Status prepare() override { return rpc_.prepare(); }
  std::string notice(NodeId to) override { return rpc_.notice(to); }
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  base::Status load() override;
  bool serve() override { return rpc_.serve(*this); }

 private:
  uint32_t handle(NodeId from, Bytes request, std::span<std::byte> response) override;
  void prefetch(Bytes request) override;
  std::optional<KvRequest> parse(Bytes request) const;

  const Plan& plan_;
  NodeId self_;
  bool is_right_aligned_;
  std::unique_ptr<KvStore> store_;
  RpcServer rpc_;
};

// What a core answers to an op.
uint32_t execute_kv(KvStore& store, const KvRequest& request, std::span<std::byte> response);
// Every key of the core's partition, kLoadedVersion.
base::Status load_partition(const Plan& plan, NodeId self, KvStore& store, bool is_right_aligned);

class KvClient final : public ClientNode {
 public:
  // kOfClient: a client has one core for all of its ops, as connections have where cores share their store.
  enum class Route : uint8_t { kOfKey, kOfClient };
  KvClient(const Plan& plan, NodeId self, Fabric& fabric, const RpcShape& shape, Route route = Route::kOfKey);

  base::Status prepare() override { return rpc_.prepare(); }
  std::string notice(NodeId to) override { return rpc_.notice(to); }
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return rpc_.join(from, address, notice);
  }
  bool begin(const Op& op) override;
  uint32_t poll(std::span<Result> out) override;
  Trouble trouble() const override { return rpc_.trouble(); }

 private:
  const Plan& plan_;
  NodeId self_;
  bool is_right_aligned_;
  Route route_;
  RpcClient rpc_;
  std::vector<std::byte> request_;
  std::vector<Reply> replies_;
};

// What a reply says of its op.
Result to_result(const Reply& reply);

}  // namespace egret::bench_paradigms
