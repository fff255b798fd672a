// Where a client comes from, as limits by address see it.
#pragma once

#include <string>

namespace egret::proxy {

// Of a connected socket: "10.0.0.1"; "2001:db8:1:2::/64", since whoever has one address of an IPv6 network has all of
// them; "uid 1000" of a Unix socket. "unknown" if the client has gone already. Any thread.
std::string client_address(int fd);

}  // namespace egret::proxy
