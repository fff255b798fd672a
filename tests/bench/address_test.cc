// A reserved port: only the server that it is reserved for can bind it.
#include "bench/client/address.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace egret::bench;
using egret::base::UniqueFd;

namespace {

UniqueFd bound_to(uint16_t port, bool reuses) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuses ? 1 : 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return {};
  return socket;
}

}  // namespace

TEST_CASE("a server that sets SO_REUSEADDR listens on the reserved port, and is reached there") {
  const auto port = ReservedPort::reserve();
  REQUIRE(port.is_ok());
  const std::string text = "127.0.0.1:" + std::to_string(port.value().number());
  CHECK_FALSE(connect_to(parse_address(text).value()).is_ok());
  const UniqueFd server = bound_to(port.value().number(), true);
  REQUIRE(server.is_open());
  REQUIRE(::listen(server.get(), 8) == 0);
  CHECK(connect_to(parse_address(text).value()).is_ok());
}

TEST_CASE("others do not get it, whether they ask for it or for any") {
  const auto port = ReservedPort::reserve();
  REQUIRE(port.is_ok());
  CHECK_FALSE(bound_to(port.value().number(), false).is_open());
  const auto second = ReservedPort::reserve();
  REQUIRE(second.is_ok());
  CHECK(second.value().number() != port.value().number());
}
