// Where slot clients find the proxy: each address of memcached clients has a twin, of shared memory. A library that is
// given the one looks for the other.
//
//   tcp:127.0.0.1:11211  ─▶  @egret/tcp:127.0.0.1:11211     an abstract socket: of the network namespace, as TCP is
//   tcp:*:11211          ─▶  the same for 127.0.0.1 and [::1]
//   unix:PATH            ─▶  PATH.slots
//
// Cold path; any thread.
#pragma once

#include <string>
#include <vector>

namespace egret::proxy {

// The twins of a listening socket, as transport/address.h has them without "shm:"; none of one that speaks TLS.
std::vector<std::string> slot_twins(int listening_fd, bool is_tls);

}  // namespace egret::proxy
