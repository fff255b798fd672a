// The functions of libc that a program finds here instead, since LD_PRELOAD puts this library first. A call on a served socket goes
// to ServedSocket; every other call goes on to libc.
//
//   connect(fd, address) ─ a slot endpoint stands for the address, and serves us ─▶ ServedSockets
//   send, write, …, recv, read, …, poll, select on it ─▶ ServedSocket        close ─▶ forgotten
//   epoll_ctl, dup, fdopen ─▶ the connection serves from then on; if answers had come, it ends behind them
//
// Calls that this library makes itself go to libc (Inside). No exception reaches the program, but the unwinding of a thread that is
// cancelled.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/preload/inside.h"
#include "client/preload/real.h"
#include "client/preload/served_sockets.h"
#include "client/preload/signals.h"

#define EGRET_INTERPOSES extern "C" __attribute__((visibility("default")))

namespace {

using namespace egret::preload;

ServedSockets& sockets() {
  return ServedSockets::instance();
}

// Null: not one of ours, or a call of our own.
std::shared_ptr<ServedSocket> find(int fd) {
  if (is_inside || !ServedSockets::has(fd)) return nullptr;
  const Inside inside;
  return sockets().find(fd);
}

// What fails inside is an end of the connection, and of all that share its engine.
template <typename Work>
ssize_t served(ServedSocket& socket, Work work) {
  const Inside inside;
  try {
    return work();
  } catch (abi::__forced_unwind&) {  // the thread is cancelled
    throw;
  } catch (...) {
    socket.break_down();
    errno = ECONNRESET;
    return -1;
  }
}

// As served(), for calls that send. Sending after the program's own shutdown() raises SIGPIPE, outside of served(): the handler may
// call any function of this file, or leave by longjmp().
template <typename Send>
ssize_t sending(ServedSocket& socket, int flags, Send send) {
  const ssize_t sent = served(socket, send);
  if (sent < 0 && errno == EPIPE && (flags & MSG_NOSIGNAL) == 0 && socket.is_shut_by_program()) {
    ::raise(SIGPIPE);
    errno = EPIPE;
  }
  return sent;
}

constexpr size_t kMostPieces = IOV_MAX;  // of one call; the kernel refuses more

bool is_wrong(int count) {
  return count < 0 || static_cast<size_t>(count) > kMostPieces;
}

ssize_t send_pieces(ServedSocket& socket, const iovec* pieces, size_t count, int flags) {
  if (count == 1) return socket.send({static_cast<const char*>(pieces->iov_base), pieces->iov_len}, flags);
  std::string all;
  for (size_t i = 0; i < count; ++i) all.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  return socket.send(all, flags);
}

constexpr size_t kMostPeeked = 1 << 20;

// By one recv(): bytes that are only looked at would be given to each piece again.
ssize_t peek_pieces(ServedSocket& socket, const iovec* pieces, size_t count, int flags) {
  size_t room = 0;
  for (size_t i = 0; i < count; ++i) room += std::min(pieces[i].iov_len, kMostPeeked - room);
  std::string all(room, '\0');
  const ssize_t got = socket.recv(all.data(), room, flags);
  size_t left = got > 0 ? static_cast<size_t>(got) : 0;
  for (const char* from = all.data(); left > 0; ++pieces) {
    const size_t length = std::min(left, pieces->iov_len);
    if ((flags & MSG_TRUNC) == 0) std::memcpy(pieces->iov_base, from, length);
    from += length;
    left -= length;
  }
  return got;
}

ssize_t recv_pieces(ServedSocket& socket, const iovec* pieces, size_t count, int flags) {
  if ((flags & MSG_PEEK) != 0 && count > 1) return peek_pieces(socket, pieces, count, flags);
  ssize_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    const int how = sum == 0 || (flags & MSG_WAITALL) != 0 ? flags : flags | MSG_DONTWAIT;
    const ssize_t got = socket.recv(static_cast<char*>(pieces[i].iov_base), pieces[i].iov_len, how);
    if (got <= 0) return sum > 0 ? sum : got;
    sum += got;
    if (static_cast<size_t>(got) < pieces[i].iov_len) break;
  }
  return sum;
}

// --- poll

constexpr nfds_t kMostPolled = 65536;
constexpr int kLongestMs = 2'000'000'000;  // 23 days

uint64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

timespec in_ms(int ms) {
  return {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000L};
}

// A call of poll() on descriptors of which some are served.
class Poll {
 public:
  Poll(pollfd* of_program, nfds_t count, int timeout_ms)
      : of_program_(of_program),
        count_(count),
        timeout_ms_(timeout_ms),
        begun_us_(now_us()),
        served_(count),
        sleepers_(count) {
    for (nfds_t i = 0; i < count; ++i) {
      if (ServedSockets::has(of_program[i].fd)) served_[i] = sockets().find(of_program[i].fd);
    }
  }

  // `mask`: signals that are held back while it waits; null: those that are so anyhow.
  int run(const sigset_t* mask) {
    if (timeout_ms_ == 0 && mask == nullptr) return turn(nullptr);
    Signals signals;
    while (true) {
      const int ready = turn(mask != nullptr ? mask : &signals.before());
      const int error = errno;
      if (ready == 0 && left() != 0) continue;
      signals.end();
      errno = error;
      return ready;
    }
  }

 private:
  // Signals come while it sleeps only, as `mask` has it.
  int turn(const sigset_t* mask) {
    const bool has_come = !look_and_arm();
    const int left_ms = has_come ? 0 : left();
    // Another thread may take what this one is to be woken by.
    const bool is_capped = awaits_ && (left_ms < 0 || left_ms > ThreadEngine::kMostUnlookedMs);
    const timespec wait = in_ms(is_capped ? ThreadEngine::kMostUnlookedMs : left_ms);
    pollfd* const first = waits_.data()->data();
    const nfds_t count = 3 * waits_.size();
    int got = 0;
    if (has_come || mask == nullptr) {
      got = real().poll(first, count, 0);
    } else {
      const InProgram handlers;
      got = real().ppoll(first, count, left_ms < 0 && !is_capped ? nullptr : &wait, mask);
    }
    const int error = errno;
    const int ready = disarm();
    errno = error;
    return got < 0 && ready == 0 ? got : ready;
  }
  int left() const {
    if (timeout_ms_ <= 0) return timeout_ms_;
    const uint64_t all_us = static_cast<uint64_t>(timeout_ms_) * 1000;
    const uint64_t passed_us = std::min(now_us() - begun_us_, all_us);
    return static_cast<int>((all_us - passed_us + 999) / 1000);  // rounded up: no wait ends too early
  }
  // Three descriptors for each that nothing has come for yet: the program's own, and two for what comes by slots, if that is to be waited
  // for. False: something has come.
  bool look_and_arm() {
    bool any = false;
    awaits_ = false;
    waits_.assign(count_, {pollfd{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}});
    for (nfds_t i = 0; i < count_; ++i) {
      of_program_[i].revents = 0;
      if (served_[i] == nullptr) {
        waits_[i][0] = {of_program_[i].fd, of_program_[i].events, 0};
      } else {
        any |= !served_[i]->arm(of_program_[i].events, waits_[i], sleepers_[i]);
        awaits_ |= sleepers_[i] != nullptr;
      }
    }
    // One socket's look may have brought what another one waits for.
    for (nfds_t i = 0; i < count_ && !any; ++i) {
      any = served_[i] != nullptr && served_[i]->ready(of_program_[i].events) != 0;
    }
    return !any;
  }
  int disarm() {
    int ready = 0;
    for (nfds_t i = 0; i < count_; ++i) {
      pollfd& each = of_program_[i];
      if (served_[i] != nullptr) {
        served_[i]->disarm(each.events, waits_[i], sleepers_[i]);
        each.revents = static_cast<short>(each.revents | served_[i]->look(each.events));
      }
      each.revents = static_cast<short>(each.revents | waits_[i][0].revents);
      ready += each.revents != 0 ? 1 : 0;
    }
    return ready;
  }

  pollfd* const of_program_;
  const nfds_t count_;
  const int timeout_ms_;
  const uint64_t begun_us_;
  std::vector<std::shared_ptr<ServedSocket>> served_;
  std::vector<ServedSocket::Wait> waits_;
  std::vector<ServedSocket::Sleeper> sleepers_;
  bool awaits_ = false;  // answers, of an engine
};

// The most frequent call waits for one answer that comes within microseconds: no system call is needed for it.
bool comes_soon(pollfd& only, int timeout_ms) {
  const bool is_to_read = (only.events & POLLIN) != 0 && (only.events & ~ServedSocket::kReadable) == 0;
  if (!is_to_read || timeout_ms == 0) return false;
  const std::shared_ptr<ServedSocket> served = sockets().find(only.fd);
  if (served == nullptr || !served->comes_soon()) return false;
  only.revents = only.events;
  return true;
}

int poll_served(pollfd* fds, nfds_t count, int timeout_ms, const sigset_t* mask, bool& is_ours) {
  is_ours = false;
  if (is_inside || !ServedSockets::has_any() || fds == nullptr || count > kMostPolled) return 0;
  if (std::none_of(fds, fds + count, [](const pollfd& each) { return ServedSockets::has(each.fd); })) return 0;
  const Inside inside;
  is_ours = true;
  try {
    if (count == 1 && comes_soon(fds[0], timeout_ms)) return 1;
    return Poll(fds, count, timeout_ms).run(mask);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    errno = ENOMEM;
    return -1;
  }
}

// Else the kernel says what is wrong.
bool is_valid(const timespec* timeout) {
  return timeout == nullptr || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1'000'000'000);
}

int ms_of(const timespec* timeout) {
  if (timeout == nullptr) return -1;
  if (timeout->tv_sec >= kLongestMs / 1000) return kLongestMs;
  return static_cast<int>(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999'999) / 1'000'000);
}

// --- select, by poll

bool has(const fd_set* set, int fd) {
  return set != nullptr && FD_ISSET(fd, set);
}

// Linux tells in it how much of the time was left.
void take_off(timeval& timeout, uint64_t passed_us) {
  timeval left{.tv_sec = timeout.tv_sec - static_cast<time_t>(passed_us / 1'000'000),
               .tv_usec = timeout.tv_usec - static_cast<suseconds_t>(passed_us % 1'000'000)};
  if (left.tv_usec < 0) left = {.tv_sec = left.tv_sec - 1, .tv_usec = left.tv_usec + 1'000'000};
  timeout = left.tv_sec < 0 ? timeval{} : left;
}

int select_served(int count, fd_set* readable, fd_set* writable, fd_set* special, timeval* timeout,
                  const sigset_t* mask, bool& is_ours) {
  is_ours = false;
  if (is_inside || !ServedSockets::has_any() || count < 0 || count > FD_SETSIZE) return 0;
  if (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) return 0;
  std::vector<pollfd> fds;
  for (int fd = 0; fd < count; ++fd) {
    const short events = static_cast<short>((has(readable, fd) ? POLLIN : 0) | (has(writable, fd) ? POLLOUT : 0) |
                                            (has(special, fd) ? POLLPRI : 0));
    if (events != 0) fds.push_back({fd, events, 0});
  }
  const timespec wait{timeout != nullptr ? timeout->tv_sec : 0, timeout != nullptr ? timeout->tv_usec * 1000 : 0};
  const uint64_t begun_us = now_us();
  const int found = poll_served(fds.data(), fds.size(), ms_of(timeout != nullptr ? &wait : nullptr), mask, is_ours);
  if (is_ours && timeout != nullptr && found == 0) *timeout = {};
  if (is_ours && timeout != nullptr && found != 0) take_off(*timeout, now_us() - begun_us);
  if (!is_ours || found < 0) return found;
  if (std::ranges::any_of(fds, [](const pollfd& each) { return (each.revents & POLLNVAL) != 0; })) {
    errno = EBADF;
    return -1;
  }
  // A set may be shorter than its type: only so many bits are the program's.
  for (fd_set* const set : {readable, writable, special}) {
    for (int fd = 0; fd < count && set != nullptr; ++fd) FD_CLR(fd, set);
  }
  int ready = 0;
  const auto tell = [&](const pollfd& each, short events, fd_set* set) {
    const short also = events == POLLPRI ? 0 : POLLERR | POLLHUP;
    if (set == nullptr || (each.events & events) == 0 || (each.revents & (events | also)) == 0) return;
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
  const int error = errno;
  const Inside inside;
  sockets().forget(fd);
  errno = error;
}

void forget_stream(FILE* stream) {
  const int error = errno;
  forget(::fileno(stream));
  errno = error;
}

void let_go(int fd) {
  const auto socket = find(fd);
  if (socket == nullptr || sockets().is_borrowed()) return;
  const auto quiet = served(*socket, [&] { return ssize_t{socket->let_go()}; });
  if (quiet == 1) forget(fd);
}

bool is_open(int fd) {
  const int error = errno;
  const bool is_so = real_rare().fcntl(fd, F_GETFD) >= 0;
  errno = error;
  return is_so;
}

void note_flags(int fd) {
  const int error = errno;
  if (const auto socket = find(fd); socket != nullptr && !sockets().is_borrowed()) socket->note_flags();
  errno = error;
}

// When the process ends in order: TCP would deliver what was sent.
[[gnu::destructor]] void finish_all() {
  if (!ServedSockets::has_any()) return;
  const Inside inside;
  try {
    if (!sockets().is_borrowed()) sockets().finish_all();
  } catch (...) {
    return;
  }
}

}  // namespace

// --- ending

EGRET_INTERPOSES void _exit(int status) {
  if (!is_inside) finish_all();
  real_rare().exit(status);
  __builtin_unreachable();
}

EGRET_INTERPOSES void _Exit(int status) {
  _exit(status);
}

// --- loading

// PHP loads its extensions so that they find libc before this library (RTLD_DEEPBIND), and libmemcached with them: without that bit
// they find this library first, as all that the program links does. The call is the last thing done, so that it is a jump, and the
// real function sees who called: a bare file name is looked for by the caller's RUNPATH.
EGRET_INTERPOSES void* dlopen(const char* file, int flags) {
  return real_rare().dlopen(file, ServedSockets::is_switched_off() ? flags : flags & ~RTLD_DEEPBIND);
}

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
  } catch (abi::__forced_unwind&) {
    throw;
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

constexpr int kUnshare = 2;  // CLOSE_RANGE_UNSHARE, of <linux/close_range.h>

EGRET_INTERPOSES int close_range(unsigned first, unsigned last, int flags) {
  if (real().close_range == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const bool closes_now = (flags & ~kUnshare) == 0;  // CLOSE_RANGE_CLOEXEC closes nothing now, others fail
  if (!is_inside && ServedSockets::has_any() && closes_now) {
    const Inside inside;
    sockets().forget_range(first, last);
  }
  return real().close_range(first, last, flags);
}

EGRET_INTERPOSES int shutdown(int fd, int how) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().shutdown(fd, how);
  return static_cast<int>(served(*socket, [&] { return ssize_t{socket->shutdown(how)}; }));
}

EGRET_INTERPOSES void closefrom(int first) {
  close_range(static_cast<unsigned>(first), ~0U, 0);
}

// --- sending

EGRET_INTERPOSES ssize_t send(int fd, const void* bytes, size_t length, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().send(fd, bytes, length, flags);
  return sending(*socket, flags, [&] { return socket->send({static_cast<const char*>(bytes), length}, flags); });
}

EGRET_INTERPOSES ssize_t sendto(int fd, const void* bytes, size_t length, int flags, const sockaddr* to,
                                socklen_t size) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().sendto(fd, bytes, length, flags, to, size);
  return sending(*socket, flags, [&] { return socket->send({static_cast<const char*>(bytes), length}, flags); });
}

EGRET_INTERPOSES ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr || message->msg_iovlen > kMostPieces) return real().sendmsg(fd, message, flags);
  return sending(*socket, flags, [&] { return send_pieces(*socket, message->msg_iov, message->msg_iovlen, flags); });
}

EGRET_INTERPOSES ssize_t write(int fd, const void* bytes, size_t length) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().write(fd, bytes, length);
  return sending(*socket, 0, [&] { return socket->send({static_cast<const char*>(bytes), length}, 0); });
}

EGRET_INTERPOSES ssize_t writev(int fd, const iovec* pieces, int count) {
  const auto socket = find(fd);
  if (socket == nullptr || is_wrong(count)) return real().writev(fd, pieces, count);
  return sending(*socket, 0, [&] { return send_pieces(*socket, pieces, static_cast<size_t>(count), 0); });
}

// --- receiving

EGRET_INTERPOSES ssize_t recv(int fd, void* to, size_t room, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().recv(fd, to, room, flags);
  return served(*socket, [&] { return socket->recv(static_cast<char*>(to), room, flags); });
}

EGRET_INTERPOSES ssize_t recvfrom(int fd, void* to, size_t room, int flags, sockaddr* from, socklen_t* size) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().recvfrom(fd, to, room, flags, from, size);
  if (size != nullptr) *size = 0;
  return served(*socket, [&] { return socket->recv(static_cast<char*>(to), room, flags); });
}

EGRET_INTERPOSES ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const auto socket = find(fd);
  if (socket == nullptr || message->msg_iovlen > kMostPieces) return real().recvmsg(fd, message, flags);
  message->msg_namelen = 0;
  message->msg_controllen = 0;
  message->msg_flags = 0;
  return served(*socket, [&] { return recv_pieces(*socket, message->msg_iov, message->msg_iovlen, flags); });
}

EGRET_INTERPOSES ssize_t read(int fd, void* to, size_t room) {
  const auto socket = find(fd);
  if (socket == nullptr) return real().read(fd, to, room);
  return served(*socket, [&] { return socket->recv(static_cast<char*>(to), room, 0); });
}

EGRET_INTERPOSES ssize_t readv(int fd, const iovec* pieces, int count) {
  const auto socket = find(fd);
  if (socket == nullptr || is_wrong(count)) return real().readv(fd, pieces, count);
  return served(*socket, [&] { return recv_pieces(*socket, pieces, static_cast<size_t>(count), 0); });
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
  const int found = poll_served(fds, count, timeout_ms, nullptr, is_ours);
  return is_ours ? found : real().poll(fds, count, timeout_ms);
}

EGRET_INTERPOSES int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size) {
  if (size / sizeof(pollfd) < count) ::abort();
  return poll(fds, count, timeout_ms);
}

EGRET_INTERPOSES int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!is_valid(timeout)) return real().ppoll(fds, count, timeout, mask);
  bool is_ours = false;
  const int found = poll_served(fds, count, ms_of(timeout), mask, is_ours);
  return is_ours ? found : real().ppoll(fds, count, timeout, mask);
}

EGRET_INTERPOSES int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                                 size_t size) {
  if (size / sizeof(pollfd) < count) ::abort();
  return ppoll(fds, count, timeout, mask);
}

EGRET_INTERPOSES int pselect(int count, fd_set* readable, fd_set* writable, fd_set* special, const timespec* timeout,
                             const sigset_t* mask) {
  if (!is_valid(timeout)) return real_rare().pselect(count, readable, writable, special, timeout, mask);
  bool is_ours = false;
  timeval wait{};
  if (timeout != nullptr) wait = {timeout->tv_sec, (timeout->tv_nsec + 999) / 1000};
  const int found =
      select_served(count, readable, writable, special, timeout != nullptr ? &wait : nullptr, mask, is_ours);
  return is_ours ? found : real_rare().pselect(count, readable, writable, special, timeout, mask);
}

EGRET_INTERPOSES int select(int count, fd_set* readable, fd_set* writable, fd_set* special, timeval* timeout) {
  bool is_ours = false;
  const int found = select_served(count, readable, writable, special, timeout, nullptr, is_ours);
  return is_ours ? found : real().select(count, readable, writable, special, timeout);
}

// --- ways of use that only the kernel can serve: each is done there first, since one that fails changes nothing

EGRET_INTERPOSES int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  const int done = real().epoll_ctl(epoll, operation, fd, event);
  if (operation == EPOLL_CTL_ADD && done == 0) let_go(fd);
  return done;
}

// Of commands with one argument or none; an argument that is not there is passed on as whatever is in its register, as libc does.
EGRET_INTERPOSES int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  const int done = real_rare().fcntl(fd, command, argument);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && done >= 0) let_go(fd);
  if (command == F_SETFL) note_flags(fd);
  return done;
}

EGRET_INTERPOSES int ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  const int done = real_rare().ioctl(fd, request, argument);
  if (request == FIONBIO) note_flags(fd);
  if (request == FIONREAD && done == 0) {
    if (const auto socket = find(fd); socket != nullptr) {
      const ssize_t bytes = served(*socket, [&] { return socket->unread(); });
      if (bytes >= 0) *static_cast<int*>(argument) = static_cast<int>(std::min<ssize_t>(bytes, INT_MAX));
    }
  }
  return done;
}

EGRET_INTERPOSES int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl(fd, command, argument);
}

// A stream reads and writes without these functions.
EGRET_INTERPOSES FILE* fdopen(int fd, const char* mode) {
  FILE* const stream = real_rare().fdopen(fd, mode);
  if (stream != nullptr) let_go(fd);
  return stream;
}

// These close the descriptor without calling close(). Its number must be forgotten, as the next file or socket gets it.
EGRET_INTERPOSES int fclose(FILE* stream) {
  forget_stream(stream);
  return real_rare().fclose(stream);
}

EGRET_INTERPOSES FILE* freopen(const char* path, const char* mode, FILE* stream) {
  forget_stream(stream);
  return real_rare().freopen(path, mode, stream);
}

EGRET_INTERPOSES FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  forget_stream(stream);
  return real_rare().freopen64(path, mode, stream);
}

EGRET_INTERPOSES int dup(int fd) {
  const int made = real_rare().dup(fd);
  if (made >= 0) let_go(fd);
  return made;
}

// What was sent over the old `to` is done before, while the number is still its own.
EGRET_INTERPOSES int dup2(int from, int to) {
  if (from == to) return real_rare().dup2(from, to);
  if (ServedSockets::has(to) && is_open(from)) forget(to);
  const int made = real_rare().dup2(from, to);
  if (made >= 0) let_go(from);
  return made;
}

EGRET_INTERPOSES int dup3(int from, int to, int flags) {
  if (from == to || (flags & ~O_CLOEXEC) != 0) return real_rare().dup3(from, to, flags);
  if (ServedSockets::has(to) && is_open(from)) forget(to);
  const int made = real_rare().dup3(from, to, flags);
  if (made >= 0) let_go(from);
  return made;
}
