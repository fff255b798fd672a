// The servers a run is put on: one that is there already, a memcached, or Egret's two daemons. What is started here is
// ended when the Server goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "bench/address.h"
#include "bench/child_process.h"

namespace egret::bench {

struct Server {
  std::string name;  // as reports call it
  Address address;
  std::vector<pid_t> pids;               // whose cost is measured
  std::vector<TemporaryFolder> folders;  // before the children, so that these end first
  std::vector<ChildProcess> children;

  Server() = default;
  Server(Server&&) = default;
  Server& operator=(Server&&) = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // In reverse order of starting: the proxy before the backend.
  ~Server() {
    while (!children.empty()) children.pop_back();
  }

  // The memory for items, as its `stats` tell; 0 if they do not.
  uint64_t memory_limit_bytes() const;
};

// `command`: the program and further arguments, separated by blanks. Added to them: a free port of 127.0.0.1, no UDP,
// -u nobody for root, and -m (MiB) unless memory_mib is 0.
base::Expected<Server> start_memcached(const std::string& command, uint64_t memory_mib);

struct EgretFiles {
  std::string binaries;  // the folder of egret-backend and egret-proxy
  std::string conf;      // the folder of their .yaml files; empty: the repository's or the installed one
  std::vector<std::string> backend_set;  // KEY=VALUE, passed on as --set
  std::vector<std::string> proxy_set;
};
// Backend and proxy on a shared-memory socket in a temporary folder, the proxy on a free port of 127.0.0.1.
base::Expected<Server> start_egret(const EgretFiles& files);

}  // namespace egret::bench
