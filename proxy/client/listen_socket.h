// The sockets that clients connect to: opened here, or inherited from the supervisor (systemd's socket activation),
// which keeps them open while we restart.
//
//   inherited, or open already ─▶ pool ─┐
//   `listen` ───────────────────────────▶ open_sockets ─▶ for each entry: a socket of the pool with its address, else a
//                                                         new one
//
// Thread: the control thread's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/service/inherited.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proxy/config.h"

namespace egret::proxy {

// The FileDescriptorName= of systemd's sockets whose clients use TLS.
inline constexpr std::string_view kInheritedTls = "tls";

// How to open sockets, besides the addresses.
struct ListenRules {
  std::string unix_mode;  // octal
  int backlog = 0;
};

struct ListenSocket {
  base::UniqueFd fd;  // listening, non-blocking
  ListenAddress address;
  bool is_inherited = false;

  // Applies new rules. An inherited socket keeps the rules of its creator.
  void renew(const ListenRules& rules) const;
  // Stops listening. Unlinks a path that we created, while the socket still listens: later another proxy may have bound
  // the same path.
  void close();
};
using ListenSockets = std::vector<ListenSocket>;

// The inherited descriptors as listening sockets, with their addresses; or an error that names a descriptor that is not
// one.
base::Expected<ListenSockets> check_inherited(std::vector<base::InheritedFd> inherited);

// A socket for each address of each entry: moved from `pool`, or newly opened. On failure `pool` is unchanged, except
// for its order, and new sockets are closed.
base::Expected<ListenSockets> open_sockets(std::span<const ListenAddress> entries, const ListenRules& rules,
                                           ListenSockets& pool);

}  // namespace egret::proxy
