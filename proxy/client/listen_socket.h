// The sockets that clients connect to: opened here, or inherited from whoever started this process (systemd's socket
// activation), who keeps them open while we are restarted.
//
//   inherited, or there already ─▶ pool ─┐
//   `listen` ────────────────────────────▶ open_sockets ─▶ each entry's place is taken by a socket of the pool that has
//                                                          its address, else one is opened
//
// Thread: the control thread's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/inherited.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proxy/config.h"

namespace egret::proxy {

// What systemd's FileDescriptorName= must say of sockets whose clients speak TLS.
inline constexpr std::string_view kInheritedTls = "tls";

// What `listen` says besides the addresses.
struct ListenRules {
  std::string unix_mode;  // octal
  int backlog = 0;
};

struct ListenSocket {
  base::UniqueFd fd;  // listens, and does not block
  ListenAddress address;
  bool is_inherited = false;

  // Follows other rules from now on; an inherited one those of whoever made it.
  void renew(const ListenRules& rules) const;
  // No more clients; a path that we made goes, first and while the socket still listens: afterwards another proxy may
  // have bound the same name.
  void close();
};
using ListenSockets = std::vector<ListenSocket>;

// The inherited descriptors as listening sockets under the addresses they have; or which of them is none.
base::Expected<ListenSockets> check_inherited(std::vector<base::InheritedFd> inherited);

// A socket for each address of each entry: out of `pool`, from which it is taken, or opened anew. On failure `pool` is
// as it was, but for its order, and nothing else is open.
base::Expected<ListenSockets> open_sockets(std::span<const ListenAddress> entries, const ListenRules& rules,
                                           ListenSockets& pool);

}  // namespace egret::proxy
