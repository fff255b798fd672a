// What the gets of a run should cost, by a walk over the store as it was loaded.
#pragma once

#include "bench_paradigms/harness/outcome.h"
#include "bench_paradigms/harness/workload.h"

namespace egret::bench_paradigms {

// Of the keys of server core `self`: the first gets that every client draws, `ops` a client at most.
Walked walk_of(const ServerNode& server, NodeId self, const Plan& plan, const WorkloadSpec& spec, uint64_t ops);

}  // namespace egret::bench_paradigms
