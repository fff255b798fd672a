// The servers a run is put on: one that is there already, a memcached, a proxy of somebody else's with a memcached
// behind it, or Egret's two daemons. What is started here is ended when the Server goes.
#pragma once

#include <csignal>
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
  std::vector<ReservedPort> ports;       // while the server runs, so that it can be started again on them
  std::vector<TemporaryFolder> folders;  // before the children, so that these end first
  std::vector<ChildProcess> children;
  bool keeps_nothing = false;  // they may be killed: a memcached takes up to a second to end by itself

  Server() = default;
  Server(Server&&) = default;
  Server& operator=(Server&&) = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // In reverse order of starting: the proxy before the backend.
  ~Server() {
    for (auto child = children.rbegin(); keeps_nothing && child != children.rend(); ++child) child->signal(SIGKILL);
    while (!children.empty()) children.pop_back();
  }

  // What it says to "version", without the word; empty if it says nothing of the kind.
  std::string version() const;
  // The process that clients are connected to; 0 if it is not one of ours.
  pid_t front() const { return pids.empty() ? 0 : pids.back(); }
  // The memory for items, as its `stats` tell; 0 if they do not.
  uint64_t memory_limit_bytes() const;
};

// How clients reach a server: by a free port of 127.0.0.1, or a socket in a temporary folder of its own.
enum class Door : uint8_t { kTcp, kUnix };

// `command`: the program and further arguments, separated by blanks. Added to them: its address, no UDP, -u nobody for
// root, -c for more connections than any run opens, and -m (MiB) unless memory_mib is 0.
base::Expected<Server> start_memcached(const std::string& command, uint64_t memory_mib, Door door = Door::kTcp);

// twemproxy, of which `command` is as above, and a memcached behind it (.pids: memcached, twemproxy), both by the same
// kind of door. One pool of one server, ketama, nothing ejected, nothing logged.
base::Expected<Server> start_twemproxy(const std::string& command, const std::string& memcached, uint64_t memory_mib,
                                       Door door);

struct EgretFiles {
  std::string binaries;  // the folder of egret-backend and egret-proxy
  std::string conf;      // the folder of their .yaml files; empty: the repository's or the installed one
  std::vector<std::string> backend_set;  // KEY=VALUE, passed on as --set
  std::vector<std::string> proxy_set;
};
// Backend and proxy (.pids in this order) on a shared-memory socket in a temporary folder. The proxy listens at a free
// port of 127.0.0.1 and on a Unix socket; .address is the one of `door`.
base::Expected<Server> start_egret(const EgretFiles& files, Door door = Door::kTcp);

// Whether the command's program is there.
bool is_installed(const std::string& command);

// The backend alone. It serves, some time from now, sessions at `meeting` ("shm:..."), and nobody at the address.
base::Expected<Server> start_backend(const EgretFiles& files, std::string& meeting);
// The end of the log of each of its processes, and whether it has ended: for the message that says what went wrong.
std::string logs_of(Server& server);

}  // namespace egret::bench
