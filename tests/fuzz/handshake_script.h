// What both handshake fuzzers over real sockets (handshake_backend_fuzz, handshake_client_fuzz) send: frames, whole or
// damaged, and descriptors of every kind that a Unix socket carries.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unique_fd.h"
#include "input.h"
#include "wire/handshake.h"

namespace egret::fuzz {

using Frame = std::vector<std::byte>;

inline bool is_printable(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

inline bool is_readable(int fd, int milliseconds) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) > 0;
}

// Some bytes of `frame` are others; or it is cut, or goes on.
inline Frame damaged(Frame frame, Input& input) {
  const auto kind = input.take<uint8_t>();
  if (kind % 4 == 0) frame.resize(std::min<size_t>(frame.size(), input.take<uint16_t>() % (frame.size() + 1)));
  if (kind % 4 == 1) frame.resize(frame.size() + input.take<uint8_t>());
  for (int changes = kind / 64; changes >= 0 && !frame.empty(); --changes) {
    frame[input.take<uint16_t>() % frame.size()] = input.take<std::byte>();
  }
  return frame;
}

// What is no frame at all, or one with a good prefix and any body.
inline Frame raw(Input& input) {
  const auto bytes = input.bytes(input.take<uint16_t>() % (2 * wire::kMaxFrame));
  Frame frame(bytes.begin(), bytes.end());
  if (frame.size() < sizeof(wire::FramePrefix) || input.take<uint8_t>() % 4 == 0) return frame;
  const Frame ready = encode(wire::Ready{});
  std::copy_n(ready.begin(), offsetof(wire::FramePrefix, type), frame.begin());
  const auto length = static_cast<uint32_t>(frame.size());
  std::memcpy(frame.data() + offsetof(wire::FramePrefix, length), &length, sizeof length);
  return frame;
}

// A descriptor of a kind that the input draws, as large as `bytes` where it has a size.
class Descriptor {
 public:
  Descriptor(Input& input, size_t bytes) { make(input, bytes); }
  // Memory as a backend makes it, with these bytes at its beginning.
  Descriptor(std::span<const std::byte> content, size_t bytes) {
    make_memory(bytes, 0);
    EGRET_CHECK(::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes)) == 0);
    EGRET_CHECK(::pwrite(fd_.get(), content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
    EGRET_CHECK(::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  }
  int get() const { return fd_.get(); }

 private:
  void make(Input& input, size_t bytes) {
    switch (input.take<uint8_t>() % 10) {
      case 0:
        return make_memory(bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
      case 1:
        return make_memory(bytes, 0);  // it may shrink under whoever maps it
      case 2:
        return make_memory(input.take<uint16_t>(), F_SEAL_SHRINK | F_SEAL_GROW);
      case 3:
        return fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      case 4:
        return fd_.reset(::eventfd(0, EFD_CLOEXEC));
      case 5:
        return make_full_pipe();  // that blocks whoever writes to it
      case 6:
        return make_pair();
      case 7:
        return fd_.reset(::epoll_create1(EPOLL_CLOEXEC));
      case 8:
        return fd_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
      default:
        return fd_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    }
  }
  void make_memory(size_t bytes, int seals) {
    fd_.reset(::memfd_create("egret-fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EGRET_CHECK(::ftruncate(fd_.get(), static_cast<off_t>(std::min<size_t>(bytes, 1 << 20))) == 0);
    if (seals != 0) EGRET_CHECK(::fcntl(fd_.get(), F_ADD_SEALS, seals) == 0);
  }
  void make_full_pipe() {
    int ends[2];
    EGRET_CHECK(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    other_.reset(ends[0]);
    fd_.reset(ends[1]);
    const std::array<char, 4096> bytes{};
    while (::write(ends[1], bytes.data(), bytes.size()) > 0) {
    }
    EGRET_CHECK(::fcntl(ends[1], F_SETFL, 0) == 0);
  }
  void make_pair() {
    int ends[2];
    EGRET_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    other_.reset(ends[0]);
    fd_.reset(ends[1]);
  }
  base::UniqueFd fd_;
  base::UniqueFd other_;  // the end that stays here
};

// At most a page of frames and descriptors at once: like sendmsg(), but a peer that hangs up is no error.
inline void send_with(int socket, std::span<const std::byte> frame, std::span<const int> descriptors) {
  iovec vector{const_cast<std::byte*>(frame.data()), frame.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 16)> control{};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  [[maybe_unused]] const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace egret::fuzz
