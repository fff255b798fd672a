#include "admin/address.h"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

namespace egret::admin {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kBacklog = 64;
constexpr int kStreamSocket = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Status malformed(const std::string& text) {
  return Status::error("expected HOST:PORT or unix:PATH, got " + base::quoted(text));
}

Expected<Address> parse_unix(const std::string& text) {
  Address address;
  address.path = text.substr(kUnixPrefix.size());
  if (address.path.empty()) return malformed(text);
  if (address.path.size() >= sizeof sockaddr_un::sun_path) return Status::error("the path is too long");
  return address;
}

std::string cannot_listen(const Address& address) {
  return "cannot listen on " + address.to_string();
}

// Not open: errno says why.
UniqueFd tcp_socket(const addrinfo& at) {
  UniqueFd socket(::socket(at.ai_family, kStreamSocket, 0));
  if (!socket.is_open()) return {};
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return {};
}

Expected<std::vector<UniqueFd>> listen_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const char* const host = address.host == "*" ? nullptr : address.host.c_str();
  const int error = ::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) return Status::error(cannot_listen(address) + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  std::vector<UniqueFd> sockets;
  int absent = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    UniqueFd socket = tcp_socket(*at);
    if (socket.is_open()) {
      sockets.push_back(std::move(socket));
    } else if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL) {
      absent = errno;  // "localhost" has an IPv6 address where there is no IPv6: one that works is enough
    } else {
      return Status::system_error(cannot_listen(address), errno);
    }
  }
  if (sockets.empty()) return Status::system_error(cannot_listen(address), absent);
  return sockets;
}

// A socket nobody listens on any more is removed; one in use, or another kind of file, is not.
Status make_way(const sockaddr_un& at) {
  struct stat info {};
  if (::lstat(at.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return Status::ok();
  const UniqueFd probe(::socket(AF_UNIX, kStreamSocket, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 || errno == EAGAIN) {
    return Status::error("in use by another process");
  }
  ::unlink(at.sun_path);
  return Status::ok();
}

Expected<std::vector<UniqueFd>> listen_unix(const Address& address) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, address.path.c_str(), address.path.size());
  UniqueFd socket(::socket(AF_UNIX, kStreamSocket, 0));
  if (!socket.is_open()) return Status::system_error(cannot_listen(address), errno);
  if (const Status free = make_way(at); !free) return Status::error(cannot_listen(address) + ": " + free.message());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return Status::system_error(cannot_listen(address), errno);
  }
  std::vector<UniqueFd> sockets;
  sockets.push_back(std::move(socket));
  return sockets;
}

sockaddr_storage bound(int socket) {
  sockaddr_storage address{};  // zeroed: a Unix socket's path ends there
  socklen_t length = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

}  // namespace

std::string Address::to_string() const {
  if (is_unix()) return std::string(kUnixPrefix) + path;
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Expected<Address> parse_address(const std::string& text) {
  if (text.starts_with(kUnixPrefix)) return parse_unix(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return malformed(text);
  Address address;
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return malformed(text);
  }
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || last != end || address.host.empty()) return malformed(text);
  return address;
}

Status check_option(const AdminOption& option) {
  return option.address.empty() ? Status::ok() : parse_address(option.address).status();
}

Expected<std::vector<UniqueFd>> listen_on(const Address& address) {
  return address.is_unix() ? listen_unix(address) : listen_tcp(address);
}

std::string bound_address(int socket) {
  const sockaddr_storage at = bound(socket);
  char text[INET6_ADDRSTRLEN] = "";
  if (at.ss_family == AF_UNIX) return "unix:" + std::string(reinterpret_cast<const sockaddr_un&>(at).sun_path);
  if (at.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(at);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(at);
  ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
}

bool is_loopback(int socket) {
  const sockaddr_storage at = bound(socket);
  if (at.ss_family == AF_UNIX) return false;
  if (at.ss_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(at).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(at).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

}  // namespace egret::admin
