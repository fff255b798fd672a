#include "transport/shm_common.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/socket.h>

#include "base/local/peer_socket.h"

namespace egret::transport::shm {

using base::Status;
using base::UniqueFd;

Status Mapping::map(int fd, size_t length, int protection) {
  reset();
  void* at = ::mmap(nullptr, length, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED)
    return Status::system_error("cannot map a region of " + std::to_string(length) + " bytes", errno);
  // A child of a program with libegret has no part in the session, and would keep its memory.
  ::madvise(at, length, MADV_DONTFORK);
  data_ = static_cast<std::byte*>(at);
  length_ = length;
  return Status::ok();
}

void Mapping::reset() {
  if (data_ != nullptr) ::munmap(data_, length_);
  data_ = nullptr;
}

Status to_socket_address(const std::string& path, sockaddr_un& address, socklen_t& length) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Status::error("shm:" + path + ": a socket path has 1 to " + std::to_string(sizeof address.sun_path - 1) +
                         " characters");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (path[0] == '@') {
    address.sun_path[0] = '\0';
  } else {
    ++length;  // the terminating zero
  }
  return Status::ok();
}

Status receive(int socket, std::span<std::byte> frame, size_t& length, std::vector<UniqueFd>& fds) {
  length = 0;
  const base::FromPeer got = base::receive_from_peer(socket, frame, fds);
  if (got.bytes < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Status::ok();
    return Status::system_error("the control socket failed", errno);
  }
  if (got.bytes == 0) return Status::error("the peer is gone");
  if (got.is_cut) return Status::error("a control frame that is too large");
  length = static_cast<size_t>(got.bytes);
  return Status::ok();
}

Status send(int socket, std::span<const std::byte> frame, std::span<const int> fds) {
  iovec vector{const_cast<std::byte*>(frame.data()), frame.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostRegionFds)] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    return Status::system_error("cannot send a control frame", errno);
  }
  return Status::ok();
}

}  // namespace egret::transport::shm
