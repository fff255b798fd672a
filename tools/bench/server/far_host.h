// Two hosts on one machine: this process in a network namespace of its own, another namespace beside it, and a veth pair
// between them. What is started with on_far() runs there; the load, and all else that this process starts, here.
//
// It takes root (CAP_NET_ADMIN, CAP_SYS_ADMIN), iproute2 and util-linux. Both namespaces go with the processes in them, so
// nothing stays behind, however this process ends. Main thread only, before any other thread is started.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/server/child_process.h"

namespace egret::bench {

class FarHost {
 public:
  // TCP has this congestion control in both, such as "reno". An error says what this machine refuses.
  static base::Expected<std::unique_ptr<FarHost>> make(const std::string& congestion);

  // Where the other host is reached from here.
  const std::string& address() const { return address_; }
  // The command, to be run there as the same process.
  std::vector<std::string> on_far(std::vector<std::string> command) const;

 private:
  FarHost(TemporaryFolder folder, ChildProcess holder);
  base::Status join(const std::string& congestion);

  TemporaryFolder folder_;  // of logs
  ChildProcess holder_;     // has the namespace, and does nothing
  std::string address_;
};

}  // namespace egret::bench
