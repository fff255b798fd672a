// What a partition says of itself when it is asked: figures that its thread alone may look at.
#pragma once

#include <cstdint>
#include <vector>

#include "op/stats.h"
#include "rpc/slot_poller.h"

namespace egret::backend {

// Owned by the control thread, which does not touch it between asking (Message::Kind::kInquire) and the answer
// (kReported); the partition's in between.
struct PartitionReport {
  std::vector<op::StatRow> store;  // counted since the start, whatever was reset
  rpc::PollerCounters poller;
  uint64_t lanes = 0;
  uint64_t lanes_awake = 0;
};

}  // namespace egret::backend
