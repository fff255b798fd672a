#include "base/log/journal.h"

#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/check.h"

namespace egret::base {

JournalSocket::JournalSocket(std::string_view path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  EGRET_CHECK(path.size() < sizeof at.sun_path);
  std::memcpy(at.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) socket_ = std::move(socket);
}

bool JournalSocket::send(std::span<const std::string> texts) const {
  if (!socket_.is_open()) return false;
  std::string datagram;
  for (const std::string& text : texts) datagram.append(text).push_back('\n');
  return ::send(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(datagram.size());
}

}  // namespace egret::base
