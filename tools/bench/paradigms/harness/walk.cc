#include "bench_paradigms/harness/walk.h"

#include <algorithm>

#include "bench/keyspace.h"

namespace egret::bench_paradigms {

namespace {
constexpr uint64_t kMostDraws = 1 << 20;  // of all clients together
}

Walked walk_of(const ServerNode& server, NodeId self, const Plan& plan, const WorkloadSpec& spec, uint64_t ops) {
  Walked out;
  if (spec.next_only) return out;
  const uint64_t most = std::max<uint64_t>(1, kMostDraws / plan.clients);
  for (uint32_t client = 0; client < plan.clients; ++client) {
    Workload workload(spec, client);
    const uint64_t draws = std::min(most, ops == 0 ? most : share_of(ops, plan.clients, client));
    for (uint64_t i = 0; i < draws; ++i) {
      const Draw draw = workload.draw();
      if (draw.kind != OpKind::kGet || partition_of(plan, plan.keys->key(draw.key)) != self) continue;
      out.steps += server.walk_of(plan.servers + client, plan.keys->key(draw.key));
      ++out.gets;
    }
  }
  return out;
}

}  // namespace egret::bench_paradigms
