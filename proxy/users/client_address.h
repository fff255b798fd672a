// The address of a client, in the form that limits by address use.
#pragma once

#include <string>

namespace egret::proxy {

// Of a connected socket: "10.0.0.1"; of IPv6 the network, "2001:db8:1:2::/64", because one host may use all its
// addresses; of a Unix socket "uid 1000". "unknown" if the client has gone already. Any thread.
std::string client_address(int fd);

}  // namespace egret::proxy
