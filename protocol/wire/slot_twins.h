// Where a proxy serves slots, by the address at which it serves memcached clients: that address's twin, a Unix socket. Both ends
// name it here: the proxy listens there, a library that is given the one looks for the other.
//
//   tcp:HOST:PORT   @egret/tcp:HOST:PORT   an abstract socket: of the network namespace, as TCP is
//   unix:PATH       PATH.slots
//
// Source: slots-of-a-proxy.md. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace egret::wire {

inline constexpr std::string_view kTwinEnding = ".slots";

// `host`: an address as inet_ntop() writes it, an IPv6 one in brackets.
inline std::string twin_of_tcp(std::string_view host, std::string_view port) {
  return std::string("@egret/tcp:").append(host).append(":").append(port);
}
inline std::string twin_of_unix(std::string_view path) {
  return std::string(path).append(kTwinEnding);
}
inline bool is_twin_of_unix(std::string_view path) {
  return path.ends_with(kTwinEnding);
}

}  // namespace egret::wire
