// One proxy of a pool's simulation: its workers, its control thread, and what they share.
//
// Single-threaded: each worker and the control thread are actors of the world, which gives them turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim_control.h"
#include "sim_worker.h"

namespace egret::sim {

class SimProxy {
 public:
  SimProxy(PoolWorld& world, uint32_t number, const std::vector<pool::Member>& members,
           const std::vector<pool::Member>& gutter);

  SimControl& control() { return control_; }
  const std::vector<std::unique_ptr<SimWorker>>& workers() const { return workers_; }
  const std::string& name() const { return name_; }

  // All clients of all workers have so many more requests.
  void ask_more(uint32_t requests);
  bool is_finished() const;
  bool is_settled() const;
  bool is_asleep() const;
  uint64_t next_tick_ns() const;
  void set_op_timeout(uint64_t ns);
  void stop();
  std::string describe() const;

 private:
  const std::string name_;
  ProxyState state_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  SimControl control_;
};

}  // namespace egret::sim
