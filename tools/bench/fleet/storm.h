// What happens after a restart of a backend that had many sessions: all of them come back, and those that are back are served
// meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "bench/server/server.h"
#include "bench_fleet/clients.h"
#include "bench_fleet/fleet.h"

namespace egret::bench_fleet {

// A worker with a session of its own that gets something again and again as soon as it has it: in a thread, until it is asked.
class Bystander {
 public:
  explicit Bystander(const rpc::SessionOptions& asks);
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  // Ends it, and fills in what it got since it was back, until now.
  void tell(Restart& restart);
  // After tell().
  const base::Status& health() const { return health_; }

 private:
  void run();

  const rpc::SessionOptions asks_;
  std::atomic<bool> ends_{false};
  std::vector<double> took_us_;  // of the gets since the session was last opened; the thread's until it has ended
  base::Status health_ = base::Status::ok();
  std::thread thread_;
};

// Until all of `clients` are back at the backend, which has just been started again.
base::Status watch_return(Clients& clients, bench::Server& backend, double patience_s, const std::atomic<bool>& stop,
                          Restart& restart);

}  // namespace egret::bench_fleet
