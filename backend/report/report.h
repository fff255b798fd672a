// A partition's report to the control thread: figures that only the partition's thread may read.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/executor.h"
#include "op/stats.h"
#include "rpc/slot_poller.h"

namespace egret::backend {

// Owned by the control thread, except between its message kInquire and the answer kReported: then the partition owns
// it.
struct PartitionReport {
  std::vector<op::StatRow> store;  // counted since the start; `stats reset` does not change it
  rpc::PollerCounters poller;
  ExecutorCounters executor;
  ExecutorLevels levels;
  uint64_t lanes = 0;
  uint64_t lanes_awake = 0;
  uint64_t pushing_is_cheap = 0;  // 1: it tells clients so
};

}  // namespace egret::backend
