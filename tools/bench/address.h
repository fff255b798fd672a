// Where a server listens: "HOST:PORT" (also "tcp:HOST:PORT", "[::1]:PORT") or "unix:PATH"; and sockets to it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::bench {

struct Address {
  std::string host;  // empty for a Unix socket
  std::string port;
  std::string path;  // of a Unix socket

  std::string to_string() const { return path.empty() ? host + ":" + port : "unix:" + path; }
};

base::Expected<Address> parse_address(const std::string& text);

// A connected blocking socket, TCP_NODELAY set.
base::Expected<base::UniqueFd> connect_to(const Address& address);

// A TCP port of 127.0.0.1 that was free a moment ago.
base::Expected<uint16_t> free_loopback_port();

}  // namespace egret::bench
