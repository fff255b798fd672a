#include "proxy/client/listen_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/local/peer_socket.h"
#include "base/service/listening.h"
#include "proxy/client/connection_table.h"

namespace egret::proxy {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

sockaddr_storage bound_address(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

int option_of(int fd, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  return ::getsockopt(fd, level, name, &value, &length) == 0 ? value : -1;
}

// Whether clients that connect to that address reach the socket: it is bound to it, or to all addresses of both
// families.
bool serves(int fd, const sockaddr& wanted) {
  const sockaddr_storage bound = bound_address(fd);
  if (wanted.sa_family == AF_INET && bound.ss_family == AF_INET) {
    const auto& is = reinterpret_cast<const sockaddr_in&>(bound);
    const auto& other = reinterpret_cast<const sockaddr_in&>(wanted);
    return is.sin_port == other.sin_port && is.sin_addr.s_addr == other.sin_addr.s_addr;
  }
  if (bound.ss_family != AF_INET6) return false;
  const auto& is = reinterpret_cast<const sockaddr_in6&>(bound);
  if (wanted.sa_family == AF_INET6) {
    const auto& other = reinterpret_cast<const sockaddr_in6&>(wanted);
    return is.sin6_port == other.sin6_port && std::memcmp(&is.sin6_addr, &other.sin6_addr, sizeof is.sin6_addr) == 0;
  }
  const auto& other = reinterpret_cast<const sockaddr_in&>(wanted);
  return other.sin_port == is.sin6_port && other.sin_addr.s_addr == htonl(INADDR_ANY) &&
         IN6_IS_ADDR_UNSPECIFIED(&is.sin6_addr) && option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
}

bool serves(int fd, const std::string& path) {
  const sockaddr_storage bound = bound_address(fd);
  const auto& is = reinterpret_cast<const sockaddr_un&>(bound);
  return bound.ss_family == AF_UNIX &&
         path == std::string_view(is.sun_path, ::strnlen(is.sun_path, sizeof is.sun_path));
}

// Its address as an entry of `listen`.
ListenAddress address_of(int fd, bool is_tls) {
  ListenAddress address;
  const sockaddr_storage bound = bound_address(fd);
  const auto& any = reinterpret_cast<const sockaddr&>(bound);
  std::string text = address_text(any);  // "tcp:1.2.3.4:5", "tcp6:[::1]:5", "unix:/x"
  if (bound.ss_family == AF_UNIX) {
    address.kind = ListenAddress::Kind::kUnix;
    address.host = text.substr(text.find(':') + 1);
    return address;
  }
  if (is_tls) address.kind = ListenAddress::Kind::kTls;
  text = text.substr(text.find(':') + 1, text.rfind(':') - text.find(':') - 1);
  address.host = text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
  address.port = ntohs(bound.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                                                  : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port);
  return address;
}

// Why the descriptor is not a listening stream socket; empty: it is one.
std::string fault_of(int fd) {
  const int type = option_of(fd, SOL_SOCKET, SO_TYPE);
  if (type < 0) return "is no socket";
  if (type != SOCK_STREAM) return "is no stream socket";
  const int domain = option_of(fd, SOL_SOCKET, SO_DOMAIN);
  if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX) return "is neither a TCP nor a Unix socket";
  if (option_of(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1) return "does not listen";
  if (domain != AF_UNIX && option_of(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP) return "is no TCP socket";
  return {};
}

mode_t mode_of(const ListenRules& rules) {
  return static_cast<mode_t>(std::stoul(rules.unix_mode, nullptr, 8)) & 0777;
}

// The sockets of one call of open_sockets(). Unless it succeeds, those of the pool go back and the others are closed.
class Opening {
 public:
  Opening(const ListenRules& rules, ListenSockets& pool) : rules_(rules), pool_(pool) {}
  ~Opening() {
    for (Place& place : places_) {
      if (place.is_of_pool) {
        place.socket.address = place.before;
        pool_.push_back(std::move(place.socket));
      } else {
        place.socket.close();
      }
    }
  }

  Status open(const ListenAddress& address) { return address.is_unix() ? open_unix(address) : open_tcp(address); }
  ListenSockets take() {
    ListenSockets sockets;
    for (Place& place : places_) sockets.push_back(std::move(place.socket));
    places_.clear();
    return sockets;
  }

 private:
  struct Place {
    ListenSocket socket;
    bool is_of_pool = false;
    ListenAddress before{};  // its address in the pool
  };

  // Whether one of the sockets serves that address.
  template <typename Wanted>
  bool find(const Wanted& wanted, const ListenAddress& address) {
    for (const Place& place : places_) {
      if (place.is_of_pool && serves(place.socket.fd.get(), wanted)) return true;  // same address, or both families
    }
    const auto at =
        std::ranges::find_if(pool_, [&](const ListenSocket& socket) { return serves(socket.fd.get(), wanted); });
    if (at == pool_.end()) return false;
    ListenAddress before = std::exchange(at->address, address);
    places_.push_back({std::move(*at), true, std::move(before)});
    pool_.erase(at);
    return true;
  }

  void add(UniqueFd fd, const ListenAddress& address) { places_.push_back({{std::move(fd), address, false}}); }

  Status open_tcp(const ListenAddress& address) {
    const std::string what = "cannot listen on " + address.to_string();
    auto found = base::resolve_to_listen(address.host, address.port, what);
    if (!found) return found.status();
    // IPv6 first: an inherited socket may serve both families; then IPv4 cannot be bound.
    std::vector<const addrinfo*> wanted;
    for (const addrinfo* at = found.value().get(); at != nullptr; at = at->ai_next) wanted.push_back(at);
    std::stable_partition(wanted.begin(), wanted.end(), [](const addrinfo* at) { return at->ai_family == AF_INET6; });
    bool any = false;
    int absent = 0;
    for (const addrinfo* at : wanted) {
      if (find(*at->ai_addr, address)) {
        any = true;
      } else if (UniqueFd socket = base::listen_at(*at, rules_.backlog); socket.is_open()) {
        add(std::move(socket), address);
        any = true;
      } else if (base::is_absent(errno)) {
        absent = errno;
      } else {
        return Status::system_error(what, errno);
      }
    }
    return any ? Status::ok() : Status::system_error(what, absent);
  }

  Status open_unix(const ListenAddress& address) {
    const std::string name = address.to_string();
    if (find(address.host, address)) return Status::ok();
    if (address.host.size() >= sizeof sockaddr_un::sun_path) return Status::error(name + ": the path is too long");
    auto socket = base::listen_at_path(address.host, mode_of(rules_), rules_.backlog, "cannot listen on " + name);
    if (!socket) return socket.status();
    add(std::move(socket.value()), address);
    return Status::ok();
  }

  const ListenRules& rules_;
  ListenSockets& pool_;
  std::vector<Place> places_;
};

}  // namespace

void ListenSocket::renew(const ListenRules& rules) const {
  if (is_inherited) return;
  ::listen(fd.get(), rules.backlog);
  if (address.is_unix()) ::chmod(address.host.c_str(), mode_of(rules));
}

void ListenSocket::close() {
  if (!fd.is_open()) return;
  if (address.is_unix() && !is_inherited) ::unlink(address.host.c_str());
  base::close_listener(std::move(fd));
}

Expected<ListenSockets> check_inherited(std::vector<base::InheritedFd> inherited) {
  ListenSockets sockets;
  for (base::InheritedFd& each : inherited) {
    const int fd = each.fd.get();
    if (const std::string fault = fault_of(fd); !fault.empty()) {
      return Status::error("descriptor " + std::to_string(fd) + " (" + each.name +
                           "), which was passed to listen on, " + fault);
    }
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return Status::system_error("fcntl", errno);
    base::refuse_descriptors(fd);
    ListenAddress address = address_of(fd, each.name == kInheritedTls);
    sockets.push_back({std::move(each.fd), std::move(address), true});
  }
  return sockets;
}

Expected<ListenSockets> open_sockets(std::span<const ListenAddress> entries, const ListenRules& rules,
                                     ListenSockets& pool) {
  Opening opening(rules, pool);
  for (const ListenAddress& address : entries) {
    if (Status opened = opening.open(address); !opened) return opened;
  }
  return opening.take();
}

}  // namespace egret::proxy
