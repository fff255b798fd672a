#include "base/notify.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/unique_fd.h"

namespace egret::base {

void notify_supervisor(const std::string& lines) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (name == nullptr || name[0] == '\0' || std::strlen(name) >= sizeof to.sun_path) return;
  std::memcpy(to.sun_path, name, std::strlen(name));
  if (name[0] == '@') to.sun_path[0] = '\0';
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const timeval patience{1, 0};  // whoever does not read must not halt us for ever
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(name));
  ::sendto(socket.get(), lines.data(), lines.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace egret::base
