// What a node's thread does in one run of a session: the server serves, the client drives, through four phases that all
// nodes of all hosts go through together (Gate).
//
//   ready ─▶ warm-up ─▶ round ─▶ drain       clients: for a time, or until all their ops are answered
//                                            servers: serve until the phase is over on all nodes
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "bench_paradigms/harness/driver.h"
#include "bench_paradigms/session/session.h"

namespace egret::bench_paradigms {

// What every node is told of a run, besides the plan. Travels as it is: Order::workload.
struct RunOrder {
  WorkloadSpec workload;
  Load load;
  uint64_t warm_up_ns = 0;
  uint64_t round_ns = 0;  // 0: until all ops are answered
  uint64_t run = 0;       // number of the run in this session
};

RunOrder order_of(const Setting& setting, const Case& one, bool next_only);

// One object a process, on every host.
class HarnessWork final : public NodeWork {
 public:
  // A NodeOutcome, as it lies in memory. Any thread.
  std::string run(Seat& seat) override;

 private:
  // The one of this run, of all clients of this process.
  std::shared_ptr<Knowledge> knowledge_of(const RunOrder& order, uint32_t keys);

  std::mutex mutex_;
  std::weak_ptr<Knowledge> knowledge_;
  uint64_t run_ = UINT64_MAX;  // whose that is
};

}  // namespace egret::bench_paradigms
