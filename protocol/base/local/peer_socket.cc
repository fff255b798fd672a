#include "base/local/peer_socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include "base/local/closer.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16
#endif

namespace egret::base {

namespace {

constexpr size_t kMostTravelling = 253;  // SCM_MAX_FD: the kernel lets so many descriptors travel with one message
constexpr int kMostDrained = 64;         // messages of a socket that is closed; one that holds more goes to the Closer

bool is_unix(int socket) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

void take_descriptors(msghdr& message, std::vector<UniqueFd>& descriptors) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}

// Whether the next message brings descriptors. They stay in the queue: this process gets none.
bool next_brings_descriptors(int socket) {
  std::byte first{};
  iovec piece{&first, sizeof first};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  // There is no room for descriptors, so the kernel says by a flag that there are some.
  return ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_PEEK) >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
}

// Whether its queue is known to hold no descriptor any more.
bool is_drained(int socket) {
  std::array<std::byte, 4096> dropped;
  for (int i = 0; i < kMostDrained; ++i) {
    if (next_brings_descriptors(socket)) return false;
    std::vector<UniqueFd> descriptors;
    const FromPeer got = receive_from_peer(socket, dropped, descriptors);
    if (!descriptors.empty()) {
      close_elsewhere(descriptors);
      return false;
    }
    if (got.bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got.bytes == 0) return true;
  }
  return false;
}

}  // namespace

bool refuse_descriptors(int socket) {
  const int off = 0;
  return ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
}

bool may_bring_descriptors(int socket) {
  int passes = 1;
  socklen_t length = sizeof passes;
  if (::getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &passes, &length) == 0) return passes != 0;
  return is_unix(socket);
}

FromPeer receive_from_peer(int socket, std::span<std::byte> buffer, std::vector<UniqueFd>& descriptors) {
  const iovec piece{buffer.data(), buffer.size()};
  return receive_from_peer(socket, {&piece, 1}, descriptors);
}

FromPeer receive_from_peer(int socket, std::span<const iovec> pieces, std::vector<UniqueFd>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostTravelling)];
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // recvmsg() does not change it
  message.msg_iovlen = pieces.size();
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  FromPeer got;
  got.bytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got.bytes < 0) return got;
  got.is_cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  take_descriptors(message, descriptors);
  return got;
}

void close_peer_socket(UniqueFd socket) {
  if (!socket.is_open() || !may_bring_descriptors(socket.get())) return;
  // Nothing more can come; what has come is looked at.
  ::shutdown(socket.get(), SHUT_RDWR);
  if (!is_drained(socket.get())) Closer::of_process().close(std::move(socket));
}

void close_listener(UniqueFd listener) {
  if (listener.is_open() && may_bring_descriptors(listener.get())) Closer::of_process().close(std::move(listener));
}

void close_elsewhere(std::vector<UniqueFd>& descriptors) {
  for (UniqueFd& descriptor : descriptors) Closer::of_process().close(std::move(descriptor));
  descriptors.clear();
}

}  // namespace egret::base
