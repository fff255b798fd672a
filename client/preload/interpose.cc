// The functions that this library stands before: of a served socket they go to ServedSocket, of everything else to libc.
//
//   connect(fd, address) ─ a slot endpoint stands for the address, and serves us ─▶ ServedSockets
//   send, write, …, recv, read, …, poll, select on it ─▶ ServedSocket        close ─▶ forgotten
//   epoll_ctl, dup ─▶ the connection serves from then on, if nothing is under way
//
// What the library itself calls goes to libc (Inside). Nothing that is thrown leaves it.
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/preload/real.h"
#include "client/preload/served_sockets.h"

#define EGRET_INTERPOSES extern "C" __attribute__((visibility("default")))

namespace {

using namespace egret::preload;

// The thread is in this library: its calls are the library's own.
thread_local bool is_inside = false;
class Inside {
 public:
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

ServedSockets& sockets() {
  return ServedSockets::instance();
}

// Null: not one of ours, or a call of our own.
std::shared_ptr<ServedSocket> find(int fd) {
  if (is_inside || !ServedSockets::has(fd)) return nullptr;
  const Inside inside;
  return sockets().find(fd);
}

// What fails inside is an end of the connection.
template <typename Work>
ssize_t served(Work work) noexcept {
  const Inside inside;
  try {
    return work();
  } catch (...) {
    errno = ECONNRESET;
    return -1;
  }
}

ssize_t send_pieces(ServedSocket& socket, const iovec* pieces, size_t count, int flags) {
  if (count == 1) return socket.send({static_cast<const char*>(pieces->iov_base), pieces->iov_len}, flags);
  std::string all;
  for (size_t i = 0; i < count; ++i) all.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  return socket.send(all, flags);
}

ssize_t recv_pieces(ServedSocket& socket, const iovec* pieces, size_t count, int flags) {
  ssize_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    const int how = sum == 0 ? flags : flags | MSG_DONTWAIT;
    const ssize_t got = socket.recv(static_cast<char*>(pieces[i].iov_base), pieces[i].iov_len, how);
    if (got <= 0) return sum > 0 ? sum : got;
    sum += got;
    if (static_cast<size_t>(got) < pieces[i].iov_len) break;
  }
  return sum;
}

// --- poll

uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// A call of poll() on descriptors of which some are served.
class Poll {
 public:
  Poll(pollfd* of_program, nfds_t count) : of_program_(of_program), count_(count), served_(count) {
    bool any = false;
    for (nfds_t i = 0; i < count; ++i) {
      if (of_program[i].fd >= 0) served_[i] = sockets().find(of_program[i].fd);
      any |= served_[i] != nullptr;
    }
    has_served_ = any;
  }
  bool has_served() const { return has_served_; }

  int run(int timeout_ms) {
    const uint64_t begun_ms = timeout_ms > 0 ? now_ms() : 0;
    while (true) {
      const bool any = look();
      int wait_ms = any ? 0 : timeout_ms;
      if (wait_ms > 0) {
        const uint64_t passed = now_ms() - begun_ms;
        wait_ms = passed < static_cast<uint64_t>(timeout_ms) ? timeout_ms - static_cast<int>(passed) : 0;
      }
      if (!prepare(wait_ms)) continue;
      const int got = real().poll(waits_.data(), waits_.size(), wait_ms);
      if (got < 0) return got;
      const int ready = collect();
      if (ready > 0 || wait_ms == 0) return ready;
    }
  }

 private:
  bool look() {
    bool any = false;
    for (nfds_t i = 0; i < count_; ++i) {
      of_program_[i].revents = 0;
      if (served_[i] != nullptr) of_program_[i].revents = served_[i]->look(of_program_[i].events);
      any |= of_program_[i].revents != 0;
    }
    return any;
  }
  // Two descriptors for each: the engine's, if it has one that is to be waited for, and the program's own. False: look again.
  bool prepare(int& wait_ms) {
    waits_.assign(2 * count_, pollfd{-1, 0, 0});
    for (nfds_t i = 0; i < count_; ++i) {
      pollfd& connection = waits_[2 * i + 1];
      if (served_[i] == nullptr) {
        connection = {of_program_[i].fd, of_program_[i].events, 0};
      } else if (of_program_[i].revents == 0 && !served_[i]->arm(of_program_[i].events, waits_[2 * i], connection)) {
        if (wait_ms == 0) continue;
        return false;
      }
    }
    return true;
  }
  int collect() {
    int ready = 0;
    for (nfds_t i = 0; i < count_; ++i) {
      if (served_[i] != nullptr && (waits_[2 * i].revents & POLLIN) != 0) {
        served_[i]->woken();
        of_program_[i].revents = static_cast<short>(of_program_[i].revents | served_[i]->look(of_program_[i].events));
      }
      of_program_[i].revents = static_cast<short>(of_program_[i].revents | waits_[2 * i + 1].revents);
      ready += of_program_[i].revents != 0 ? 1 : 0;
    }
    return ready;
  }

  pollfd* const of_program_;
  const nfds_t count_;
  std::vector<std::shared_ptr<ServedSocket>> served_;
  std::vector<pollfd> waits_;
  bool has_served_ = false;
};

int poll_served(pollfd* fds, nfds_t count, int timeout_ms, bool& is_ours) {
  is_ours = false;
  if (is_inside || !ServedSockets::has_any() || fds == nullptr || count > 65536) return 0;
  const Inside inside;
  try {
    Poll call(fds, count);
    if (!call.has_served()) return 0;
    is_ours = true;
    return call.run(timeout_ms);
  } catch (...) {
    errno = ENOMEM;
    return -1;
  }
}

int ms_of(const timespec* timeout) {
  if (timeout == nullptr) return -1;
  const auto ms = timeout->tv_sec * 1000 + (timeout->tv_nsec + 999'999) / 1'000'000;
  return ms > 86'400'000 ? 86'400'000 : static_cast<int>(ms);
}

// --- select, by poll

bool has(const fd_set* set, int fd) {
  return set != nullptr && FD_ISSET(fd, set);
}

int select_served(int count, fd_set* readable, fd_set* writable, fd_set* special, timeval* timeout, bool& is_ours) {
  is_ours = false;
  if (is_inside || !ServedSockets::has_any() || count < 0 || count > FD_SETSIZE) return 0;
  std::vector<pollfd> fds;
  for (int fd = 0; fd < count; ++fd) {
    const short events = static_cast<short>((has(readable, fd) ? POLLIN : 0) | (has(writable, fd) ? POLLOUT : 0) |
                                            (has(special, fd) ? POLLPRI : 0));
    if (events != 0) fds.push_back({fd, events, 0});
  }
  const timespec wait{timeout != nullptr ? timeout->tv_sec : 0, timeout != nullptr ? timeout->tv_usec * 1000 : 0};
  const int found = poll_served(fds.data(), fds.size(), ms_of(timeout != nullptr ? &wait : nullptr), is_ours);
  if (!is_ours || found < 0) return found;
  for (fd_set* const set : {readable, writable, special}) {
    if (set != nullptr) FD_ZERO(set);
  }
  int ready = 0;
  const auto tell = [&](const pollfd& each, short events, fd_set* set) {
    if (set == nullptr || (each.events & events) == 0 || (each.revents & (events | POLLERR | POLLHUP)) == 0) return;
    FD_SET(each.fd, set);
    ++ready;
  };
  for (const pollfd& each : fds) {
    tell(each, POLLIN, readable);
    tell(each, POLLOUT, writable);
    tell(each, POLLPRI, special);
  }
  return ready;
}

void forget(int fd) {
  if (is_inside || !ServedSockets::has(fd)) return;
  const Inside inside;
  sockets().forget(fd);
}

void let_go(int fd) {
  if (const auto socket = find(fd)) {
    const Inside inside;
    if (!sockets().is_borrowed() && socket->let_go()) sockets().forget(fd);
  }
}

}  // namespace

// --- connecting, closing

EGRET_INTERPOSES int socket(int domain, int type, int protocol) {
  const int fd = real().socket(domain, type, protocol);
  forget(fd);  // it was closed where we did not see it
  return fd;
}

EGRET_INTERPOSES int connect(int fd, const sockaddr* address, socklen_t length) {
  const int connected = real().connect(fd, address, length);
  if (is_inside || (connected != 0 && errno != EINPROGRESS)) return connected;
  const int error = errno;
  const Inside inside;
  try {
    sockets().take_over(fd, address, length);
  } catch (...) {
    sockets().forget(fd);
  }
  errno = error;
  return connected;
}

EGRET_INTERPOSES int close(int fd) {
  forget(fd);
  return real().close(fd);
}

EGRET_INTERPOSES int close_range(unsigned first, unsigned last, int flags) {
  if (!is_inside && ServedSockets::has_any() && (flags & 4) == 0) {  // CLOSE_RANGE_CLOEXEC closes nothing now
    const Inside inside;
    sockets().forget_range(first, last);
  }
  if (real().close_range != nullptr) return real().close_range(first, last, flags);
  errno = ENOSYS;
  return -1;
}

EGRET_INTERPOSES int shutdown(int fd, int how) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().shutdown(fd, how);
  return static_cast<int>(served([&] { return ssize_t{socket->shutdown(how)}; }));
}

// --- sending

EGRET_INTERPOSES ssize_t send(int fd, const void* bytes, size_t length, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().send(fd, bytes, length, flags);
  return served([&] { return socket->send({static_cast<const char*>(bytes), length}, flags); });
}

EGRET_INTERPOSES ssize_t sendto(int fd, const void* bytes, size_t length, int flags, const sockaddr* to,
                                socklen_t size) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().sendto(fd, bytes, length, flags, to, size);
  return served([&] { return socket->send({static_cast<const char*>(bytes), length}, flags); });
}

EGRET_INTERPOSES ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().sendmsg(fd, message, flags);
  return served([&] { return send_pieces(*socket, message->msg_iov, message->msg_iovlen, flags); });
}

EGRET_INTERPOSES ssize_t write(int fd, const void* bytes, size_t length) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().write(fd, bytes, length);
  return served([&] { return socket->send({static_cast<const char*>(bytes), length}, 0); });
}

EGRET_INTERPOSES ssize_t writev(int fd, const iovec* pieces, int count) {
  const auto socket = find(fd);
  if (socket == nullptr || count < 0) return real().writev(fd, pieces, count);
  return served([&] { return send_pieces(*socket, pieces, static_cast<size_t>(count), 0); });
}

// --- receiving

EGRET_INTERPOSES ssize_t recv(int fd, void* to, size_t room, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().recv(fd, to, room, flags);
  return served([&] { return socket->recv(static_cast<char*>(to), room, flags); });
}

EGRET_INTERPOSES ssize_t recvfrom(int fd, void* to, size_t room, int flags, sockaddr* from, socklen_t* size) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().recvfrom(fd, to, room, flags, from, size);
  if (size != nullptr) *size = 0;
  return served([&] { return socket->recv(static_cast<char*>(to), room, flags); });
}

EGRET_INTERPOSES ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().recvmsg(fd, message, flags);
  message->msg_namelen = 0;
  message->msg_controllen = 0;
  message->msg_flags = 0;
  return served([&] { return recv_pieces(*socket, message->msg_iov, message->msg_iovlen, flags); });
}

EGRET_INTERPOSES ssize_t read(int fd, void* to, size_t room) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().read(fd, to, room);
  return served([&] { return socket->recv(static_cast<char*>(to), room, 0); });
}

EGRET_INTERPOSES ssize_t readv(int fd, const iovec* pieces, int count) {
  const auto socket = find(fd);
  if (socket == nullptr || count < 0) return real().readv(fd, pieces, count);
  return served([&] { return recv_pieces(*socket, pieces, static_cast<size_t>(count), 0); });
}

// What a fortified build calls; the rooms are right, or the program would have ended.
EGRET_INTERPOSES ssize_t __recv_chk(int fd, void* to, size_t room, size_t size, int flags) {
  if (room > size) ::abort();
  return recv(fd, to, room, flags);
}

EGRET_INTERPOSES ssize_t __recvfrom_chk(int fd, void* to, size_t room, size_t size, int flags, sockaddr* from,
                                        socklen_t* length) {
  if (room > size) ::abort();
  return recvfrom(fd, to, room, flags, from, length);
}

EGRET_INTERPOSES ssize_t __read_chk(int fd, void* to, size_t room, size_t size) {
  if (room > size) ::abort();
  return read(fd, to, room);
}

// --- waiting

EGRET_INTERPOSES int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  bool is_ours = false;
  const int found = poll_served(fds, count, timeout_ms, is_ours);
  return is_ours ? found : real().poll(fds, count, timeout_ms);
}

EGRET_INTERPOSES int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size) {
  if (size / sizeof(pollfd) < count) ::abort();
  return poll(fds, count, timeout_ms);
}

// Signals are not masked while a served socket is waited for.
EGRET_INTERPOSES int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  bool is_ours = false;
  const int found = poll_served(fds, count, ms_of(timeout), is_ours);
  return is_ours ? found : real().ppoll(fds, count, timeout, mask);
}

EGRET_INTERPOSES int select(int count, fd_set* readable, fd_set* writable, fd_set* special, timeval* timeout) {
  bool is_ours = false;
  const int found = select_served(count, readable, writable, special, timeout, is_ours);
  return is_ours ? found : real().select(count, readable, writable, special, timeout);
}

// --- ways of use that only the kernel can serve

EGRET_INTERPOSES int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  if (operation == EPOLL_CTL_ADD) let_go(fd);
  return real().epoll_ctl(epoll, operation, fd, event);
}

EGRET_INTERPOSES int dup(int fd) {
  let_go(fd);
  return real_dup().dup(fd);
}

EGRET_INTERPOSES int dup2(int from, int to) {
  let_go(from);
  if (from != to) forget(to);
  return real_dup().dup2(from, to);
}

EGRET_INTERPOSES int dup3(int from, int to, int flags) {
  let_go(from);
  forget(to);
  return real_dup().dup3(from, to, flags);
}
