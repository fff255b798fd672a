#include "admin/address.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "admin/host_check.h"
#include "base/service/listening.h"
#include "base/text.h"

namespace egret::admin {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kBacklog = 64;

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

Expected<std::vector<UniqueFd>> listen_tcp(const Address& address) {
  const std::string what = cannot_listen(address);
  auto found = base::resolve_to_listen(address.host, address.port, what);
  if (!found) return found.status();
  std::vector<UniqueFd> sockets;
  int absent = 0;
  for (const addrinfo* at = found.value().get(); at != nullptr; at = at->ai_next) {
    UniqueFd socket = base::listen_at(*at, kBacklog);
    if (socket.is_open()) {
      sockets.push_back(std::move(socket));
    } else if (base::is_absent(errno)) {
      absent = errno;
    } else if (errno == EADDRINUSE) {
      return Status::error(what +
                           ": in use by another process, perhaps by a daemon of the same kind on this host: give " +
                           "each its own address by the option admin (port 0: a free one; empty: none)");
    } else {
      return Status::system_error(what, errno);
    }
  }
  if (sockets.empty()) return Status::system_error(what, absent);
  return sockets;
}

Expected<std::vector<UniqueFd>> listen_unix(const Address& address) {
  auto socket = base::listen_at_path(address.path, std::nullopt, kBacklog, cannot_listen(address));
  if (!socket) return socket.status();
  std::vector<UniqueFd> sockets;
  sockets.push_back(std::move(socket.value()));
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
  auto parsed = base::parse_host_port(text);
  if (!parsed) return malformed(text);
  if (const std::string fault = base::host_fault(parsed->host); !fault.empty()) return Status::error(fault);
  Address address;
  address.host = std::move(parsed->host);
  address.port = parsed->port;
  return address;
}

Expected<AdminOption> read_options(const base::Options& options) {
  AdminOption option{.address = options.text("admin"), .is_required = options.is_given("admin")};
  for (const std::string& name : options.list("admin_hosts")) {
    if (Status good = check_host_name(name); !good) return options.error("admin_hosts", good.message());
    option.hosts.push_back(name);
  }
  if (option.address.empty()) return option;
  const auto address = parse_address(option.address);
  if (!address) return options.error("admin", address.message());
  if (!address.value().is_unix() && address.value().host != "*") option.hosts.push_back(address.value().host);
  return option;
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

}  // namespace egret::admin
