#include "proxy/client_socket.h"

#include <cerrno>

#include <sys/socket.h>

namespace egret::proxy {

ClientSocket::Transfer PlainSocket::receive(char* buffer, size_t capacity) {
  const ssize_t got = ::recv(fd(), buffer, capacity, 0);
  if (got > 0) return {Io::kDone, static_cast<size_t>(got)};
  if (got == 0) return {Io::kEnd};
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {later ? Io::kWantRead : Io::kFailed};
}

ClientSocket::Transfer PlainSocket::send(std::span<const iovec> pieces) {
  size_t offered = 0;
  for (const iovec& piece : pieces) offered += piece.iov_len;
  ssize_t sent = 0;
  do sent = ::writev(fd(), pieces.data(), static_cast<int>(pieces.size()));
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return {errno == EAGAIN || errno == EWOULDBLOCK ? Io::kWantWrite : Io::kFailed};
  return {static_cast<size_t>(sent) == offered ? Io::kDone : Io::kWantWrite, static_cast<size_t>(sent)};
}

}  // namespace egret::proxy
