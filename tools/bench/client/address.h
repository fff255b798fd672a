// A server's address, "HOST:PORT" (also "tcp:HOST:PORT", "[::1]:PORT") or "unix:PATH"; and sockets connected to it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

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

// Reserves a TCP port of 127.0.0.1 for a server: while this exists, the system gives the port to no other socket. The
// server can bind it if it sets SO_REUSEADDR, as memcached, twemproxy and egret-proxy do.
class ReservedPort {
 public:
  static base::Expected<ReservedPort> reserve();
  uint16_t number() const { return number_; }

 private:
  ReservedPort(base::UniqueFd socket, uint16_t number) : socket_(std::move(socket)), number_(number) {}

  base::UniqueFd socket_;  // bound, never listening
  uint16_t number_;
};

}  // namespace egret::bench
