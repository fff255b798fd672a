// The servers under load: a running one, a memcached, twemproxy with a memcached behind it, or Egret's two daemons.
// The destructor ends the processes that were started.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "bench/client/address.h"
#include "bench/server/child_process.h"
#include "bench/server/far_host.h"

namespace egret::bench {

struct Server {
  std::string name;  // as reports call it
  Address address;
  std::string preloader;                 // egret-run: slots serve what it starts; empty: there is none
  std::vector<pid_t> pids;               // processes whose cost is measured
  std::vector<ReservedPort> ports;       // reserved while the server runs, so that it can be restarted on them
  std::vector<TemporaryFolder> folders;  // declared before the children, so that these end first
  std::vector<ChildProcess> children;
  bool keeps_nothing = false;  // end the children by SIGKILL: a memcached takes up to a second to end by itself

  Server() = default;
  Server(Server&&) = default;
  Server& operator=(Server&&) = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends them in reverse order of starting: the proxy before the backend.
  ~Server() {
    for (auto child = children.rbegin(); keeps_nothing && child != children.rend(); ++child) child->signal(SIGKILL);
    while (!children.empty()) children.pop_back();
  }

  // Its answer to "version", without that word; empty if there is none.
  std::string version() const;
  // The process that clients are connected to; 0 if it is not one of ours.
  pid_t front() const { return pids.empty() ? 0 : pids.back(); }
  // The memory limit by its `stats`; 0 if they do not have it.
  uint64_t memory_limit_bytes() const;
};

// How clients connect to a server: at a free port of 127.0.0.1, or at a Unix socket in a temporary folder.
enum class SocketKind : uint8_t { kTcp, kUnix };

// `command`: the program and arguments, separated by blanks. Adds the address, no UDP, -u nobody for root, -c for more
// connections than any run opens, and -m (MiB) unless memory_mib is 0. With `far` it runs on that host, at TCP.
base::Expected<Server> start_memcached(const std::string& command, uint64_t memory_mib,
                                       SocketKind socket_kind = SocketKind::kTcp, const FarHost* far = nullptr);

// twemproxy (`command` as above) with a memcached behind it (.pids: memcached, twemproxy), both with the same kind of
// address. One pool of one server, ketama, no ejection, no log. With `far` the memcached runs there.
base::Expected<Server> start_twemproxy(const std::string& command, const std::string& memcached, uint64_t memory_mib,
                                       SocketKind socket_kind, const FarHost* far = nullptr);

struct EgretFiles {
  std::string binaries;  // the folder of egret-backend and egret-proxy
  std::string conf;      // the folder of their .yaml files; empty: the repository's or the installed one
  std::vector<std::string> backend_set;  // KEY=VALUE, passed on as --set
  std::vector<std::string> proxy_set;
  const FarHost* far = nullptr;  // where backends run, reached by TCP; null: here
};
// Backend and proxy (.pids in this order) on a shared-memory socket in a temporary folder, or apart (files.far). The proxy listens at a free
// port of 127.0.0.1 and on a Unix socket; .address is the one of `socket_kind`.
base::Expected<Server> start_egret(const EgretFiles& files, SocketKind socket_kind = SocketKind::kTcp);

// Whether the command's program exists.
bool is_installed(const std::string& command);

// Starts a backend without a proxy. `meeting`: "shm" or nothing, "tcp", or the address at which it is to take sessions; set to
// the one at which it does. The Server's memcached address is not served.
base::Expected<Server> start_backend(const EgretFiles& files, std::string& meeting);
// Kills it, and starts another in its place. `files`, `meeting`: as it was started.
base::Status restart_backend(Server& backend, const EgretFiles& files, const std::string& meeting);
// For error messages: the end of each process's log, and whether it has ended.
std::string logs_of(Server& server);

}  // namespace egret::bench
