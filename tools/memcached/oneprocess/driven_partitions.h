// The partitions that one worker owns: driven by its thread, within its event loop.
//
//   message_fd() and wait_fd() of each partition, a timer for upkeep ─ the worker's loop
//                                     ─▶ on_message, on_signal … poll ─ nothing left? ─▶ prepare_sleep
//
// Thread: the worker's.
#pragma once

#include <latch>
#include <memory>
#include <vector>

#include "backend/partition.h"
#include "base/unique_fd.h"
#include "events/event.h"
#include "proxy/loop_poller.h"

namespace egret::oneprocess {

class DrivenPartitions final : public proxy::LoopPoller {
 public:
  // `first`: the number of the first of them. `without_clients` is counted down when the worker has no clients any more.
  // Throws std::system_error if the system has no descriptor for it.
  DrivenPartitions(std::vector<backend::Partition*> partitions, int first, std::latch& without_clients);

  void begin(events::EventLoop& loop) override;
  bool has_begun() const { return has_begun_; }
  bool poll() override;
  bool prepare_sleep() override;
  // Returns when all of them have been told to stop. Where no worker has begun, any thread may call it.
  void end() override;
  int home() const override { return partitions_.empty() ? -1 : first_; }

 private:
  void on_timer() { armed_ns_ = UINT64_MAX; }
  void arm(uint64_t until_ns);
  bool is_over() const;
  void take_signals(bool block);

  const std::vector<backend::Partition*> partitions_;
  const int first_;
  std::latch& without_clients_;
  bool has_begun_ = false;
  std::vector<events::Event> signals_;
  // The timer is a descriptor: a pending timer of the event loop would cost each of its rounds two looks at the clock.
  const base::UniqueFd timer_;
  events::Event due_;
  uint64_t armed_ns_ = UINT64_MAX;  // when timer_ fires
};

}  // namespace egret::oneprocess
