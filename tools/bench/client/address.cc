#include "bench/client/address.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;
using base::UniqueFd;

const sockaddr* generic(const void* address) {
  return static_cast<const sockaddr*>(address);
}

Expected<UniqueFd> connect_unix(const Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof(name.sun_path)) return Status::error("socket path too long: " + address.path);
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return Status::system_error("socket", errno);
  if (::connect(fd.get(), generic(&name), sizeof(name)) != 0) {
    return Status::system_error("cannot connect to " + address.to_string(), errno);
  }
  return fd;
}

Expected<UniqueFd> connect_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (failure != 0) return Status::error(address.to_string() + ": " + ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  int last_error = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    UniqueFd fd(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
    if (fd.is_open() && ::connect(fd.get(), each->ai_addr, each->ai_addrlen) == 0) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return fd;
    }
    last_error = errno;
  }
  return Status::system_error("cannot connect to " + address.to_string(), last_error);
}

}  // namespace

Expected<Address> parse_address(const std::string& text) {
  if (text.rfind("unix:", 0) == 0) {
    if (text.size() == 5) return Status::error("address without a path: " + text);
    return Address{"", "", text.substr(5)};
  }
  std::string rest = text.rfind("tcp:", 0) == 0 ? text.substr(4) : text;
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == rest.size()) {
    return Status::error("not HOST:PORT or unix:PATH: " + text);
  }
  std::string host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return Address{host, rest.substr(colon + 1), ""};
}

Expected<UniqueFd> connect_to(const Address& address) {
  return address.path.empty() ? connect_tcp(address) : connect_unix(address);
}

Expected<ReservedPort> ReservedPort::reserve() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  void* const raw = &name;
  const int on = 1;
  if (!socket.is_open() || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), generic(raw), size) != 0 ||
      ::getsockname(socket.get(), static_cast<sockaddr*>(raw), &size) != 0) {
    return Status::system_error("cannot reserve a port", errno);
  }
  return ReservedPort(std::move(socket), ntohs(name.sin_port));
}

}  // namespace egret::bench
