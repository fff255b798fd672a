#include "proxy/slots/slot_addresses.h"

#include <cstddef>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "wire/slot_twins.h"

namespace egret::proxy {

namespace {

std::vector<std::string> twins_of_v4(const sockaddr_in& address) {
  const std::string port = std::to_string(ntohs(address.sin_port));
  if (address.sin_addr.s_addr == htonl(INADDR_ANY)) return {wire::twin_of_tcp("127.0.0.1", port)};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return {wire::twin_of_tcp(text, port)};
}

std::vector<std::string> twins_of_v6(const sockaddr_in6& address, bool is_v6_only) {
  const std::string port = std::to_string(ntohs(address.sin6_port));
  if (IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr) == 0) {
    char text[INET6_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
    return {wire::twin_of_tcp("[" + std::string(text) + "]", port)};
  }
  std::vector<std::string> twins{wire::twin_of_tcp("[::1]", port)};
  if (!is_v6_only) twins.push_back(wire::twin_of_tcp("127.0.0.1", port));
  return twins;
}

}  // namespace

std::vector<std::string> slot_twins(int listening_fd, bool is_tls) {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  if (is_tls || ::getsockname(listening_fd, reinterpret_cast<sockaddr*>(&at), &length) < 0) return {};
  if (at.ss_family == AF_INET) return twins_of_v4(reinterpret_cast<const sockaddr_in&>(at));
  if (at.ss_family == AF_INET6) {
    int is_v6_only = 0;
    socklen_t size = sizeof is_v6_only;
    ::getsockopt(listening_fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only, &size);
    return twins_of_v6(reinterpret_cast<const sockaddr_in6&>(at), is_v6_only != 0);
  }
  const auto& address = reinterpret_cast<const sockaddr_un&>(at);
  if (at.ss_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path) || address.sun_path[0] == '\0') return {};
  return {wire::twin_of_unix(address.sun_path)};
}

}  // namespace egret::proxy
