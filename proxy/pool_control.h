// Decides who the members of the pool are, and when keys go by the new ones.
//
//   list of members ─▶ change_to() ─▶ `joining`: workers open sessions ─ all have, or kMostWaitNs ─▶ `membership`
//
// So no key fails because its new owner has no session yet, and all workers move keys within a moment.
// Thread: the control thread's; a timer of its loop is pending while workers open sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "events/event.h"
#include "proxy/proxy_state.h"

namespace egret::proxy {

class Worker;

class PoolControl {
 public:
  // A new member that gives no session gets its keys after so long all the same: they are its own.
  static constexpr uint64_t kMostWaitNs = 2'000'000'000;

  PoolControl(events::EventLoop& loop, ProxyState& proxy, const std::vector<std::unique_ptr<Worker>>& workers);

  // At the start, before there are workers.
  void begin_with(const Config& config);
  // Changes to these as soon as the workers are ready; a change that is under way goes on to these. The workers take
  // notice with their next reload().
  void change_to(const Config& config);

 private:
  void look();
  void finish();

  ProxyState& proxy_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  events::Event look_;  // pending while a change is under way
  uint64_t deadline_ns_ = 0;
};

}  // namespace egret::proxy
