#include "base/service/notify.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace egret::base {

namespace {

constexpr int kBarrierPatienceMs = 10'000;
constexpr size_t kMostDescriptors = 253;  // the kernel's SCM_MAX_FD

// Length 0: there is no supervisor.
socklen_t supervisor_address(sockaddr_un& to) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  to.sun_family = AF_UNIX;
  if (name == nullptr || name[0] == '\0' || std::strlen(name) >= sizeof to.sun_path) return 0;
  std::memcpy(to.sun_path, name, std::strlen(name));
  if (name[0] == '@') to.sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(name));
}

bool send_to_supervisor(const std::string& lines, std::span<const int> descriptors, int flags) {
  sockaddr_un to{};
  const socklen_t length = supervisor_address(to);
  if (length == 0) return true;
  if (descriptors.size() > kMostDescriptors) return false;
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const timeval patience{1, 0};  // a supervisor that does not read must not block us
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  iovec text{const_cast<char*>(lines.data()), lines.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = length;
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | flags);
  while (sent < 0 && errno == EINTR);  // a signal came, such as a second SIGTERM
  return sent == static_cast<ssize_t>(lines.size());
}

}  // namespace

bool notify_supervisor(const std::string& lines, std::span<const int> descriptors) {
  return send_to_supervisor(lines, descriptors, 0);
}

bool notify_supervisor_at_once(const std::string& lines) {
  return send_to_supervisor(lines, {}, MSG_DONTWAIT);
}

// Sends one end of a pipe along; the supervisor closes it when it processes the message.
bool notify_barrier() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  if (!notify_supervisor("BARRIER=1", std::span(ends).subspan(1))) return false;
  theirs.reset();
  pollfd closed{ours.get(), 0, 0};
  int ready = 0;
  do ready = ::poll(&closed, 1, kBarrierPatienceMs);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace egret::base
