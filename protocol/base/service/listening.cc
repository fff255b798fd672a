#include "base/service/listening.h"

#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <unistd.h>

#include "base/local/peer_socket.h"

namespace egret::base {

namespace {

constexpr int kStreamSocket = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

}  // namespace

Expected<AddressList> resolve_to_listen(const std::string& host, uint16_t port, const std::string& what) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const char* const name = host == "*" ? nullptr : host.c_str();
  const int error = ::getaddrinfo(name, std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Status::error(what + ": " + ::gai_strerror(error));
  return AddressList(found, ::freeaddrinfo);
}

UniqueFd listen_at(const addrinfo& at, int backlog) {
  UniqueFd socket(::socket(at.ai_family, kStreamSocket, 0));
  if (!socket.is_open()) return {};
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket.get(), backlog) == 0) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return {};
}

bool is_absent(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

int connect_errno(const sockaddr_un& at, socklen_t length, int type) {
  const UniqueFd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&at), length) == 0 ? 0 : errno;
}

Occupant remove_stale_socket(const sockaddr_un& at, socklen_t length, int type) {
  const bool is_abstract = at.sun_path[0] == '\0';
  struct stat info {};
  if (!is_abstract) {
    if (::lstat(at.sun_path, &info) != 0) return errno == ENOENT ? Occupant::kNothing : Occupant::kOther;
    if (!S_ISSOCK(info.st_mode)) return Occupant::kOther;
  }
  if (const int error = connect_errno(at, length, type); error != ECONNREFUSED && error != ENOENT)
    return Occupant::kListener;
  if (is_abstract) return Occupant::kOther;
  ::unlink(at.sun_path);
  return Occupant::kNothing;
}

Expected<UniqueFd> listen_at_path(const std::string& path, std::optional<mode_t> mode, int backlog,
                                  const std::string& what) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.size() >= sizeof at.sun_path) return Status::error(what + ": the path is too long");
  std::memcpy(at.sun_path, path.c_str(), path.size());
  UniqueFd socket(::socket(AF_UNIX, kStreamSocket, 0));
  if (!socket.is_open()) return Status::system_error(what, errno);
  if (remove_stale_socket(at, sizeof at, SOCK_STREAM) == Occupant::kListener) {
    return Status::error(what + ": in use by another process");
  }
  const mode_t old_mask = mode ? ::umask(static_cast<mode_t>(~*mode & 0777)) : 0;
  const bool bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  const int error = errno;
  if (mode) ::umask(old_mask);
  if (!bound) return Status::system_error(what, error);
  refuse_descriptors(socket.get());
  if (::listen(socket.get(), backlog) < 0) return Status::system_error(what, errno);
  return socket;
}

}  // namespace egret::base
