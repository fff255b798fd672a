// libegret_count_calls.so, for LD_PRELOAD: counts, by name, the system calls of a program that serve requests: waiting,
// reading, writing, waking another thread.
//
//   the program ─ epoll_wait() ─▶ here: +1 in the file ─▶ libc's epoll_wait()
//
// The file: counter_file.h. Calls that libc makes within itself (locks, malloc's memory) are not seen. Threads: any.
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../before_libc.h"
#include "counter_file.h"

// Counts a call of `name`, and makes it.
#define EGRET_COUNTED(name, ...)                                                  \
  static auto* const next = egret::original<decltype(::name)>(#name);             \
  static std::atomic<uint64_t>* const counter = egret::calls::new_counter(#name); \
  counter->fetch_add(1, std::memory_order_relaxed);                               \
  return next(__VA_ARGS__)

EGRET_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  EGRET_COUNTED(epoll_wait, epoll, events, most, timeout);
}
EGRET_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  EGRET_COUNTED(epoll_pwait2, epoll, events, most, timeout, mask);
}
EGRET_EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  EGRET_COUNTED(epoll_ctl, epoll, operation, fd, event);
}
EGRET_EXPORT int poll(pollfd* fds, nfds_t count, int timeout) {
  EGRET_COUNTED(poll, fds, count, timeout);
}
EGRET_EXPORT ssize_t read(int fd, void* to, size_t bytes) {
  EGRET_COUNTED(read, fd, to, bytes);
}
EGRET_EXPORT ssize_t readv(int fd, const iovec* to, int count) {
  EGRET_COUNTED(readv, fd, to, count);
}
EGRET_EXPORT ssize_t recv(int fd, void* to, size_t bytes, int flags) {
  EGRET_COUNTED(recv, fd, to, bytes, flags);
}
EGRET_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  EGRET_COUNTED(recvmsg, fd, message, flags);
}
EGRET_EXPORT ssize_t write(int fd, const void* from, size_t bytes) {
  EGRET_COUNTED(write, fd, from, bytes);
}
EGRET_EXPORT ssize_t writev(int fd, const iovec* from, int count) {
  EGRET_COUNTED(writev, fd, from, count);
}
EGRET_EXPORT ssize_t send(int fd, const void* from, size_t bytes, int flags) {
  EGRET_COUNTED(send, fd, from, bytes, flags);
}
EGRET_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  EGRET_COUNTED(sendmsg, fd, message, flags);
}
EGRET_EXPORT int eventfd_read(int fd, eventfd_t* value) {
  EGRET_COUNTED(eventfd_read, fd, value);
}
EGRET_EXPORT int eventfd_write(int fd, eventfd_t value) {
  EGRET_COUNTED(eventfd_write, fd, value);
}
EGRET_EXPORT int timerfd_settime(int fd, int flags, const itimerspec* at, itimerspec* before) noexcept {
  EGRET_COUNTED(timerfd_settime, fd, flags, at, before);
}
EGRET_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  EGRET_COUNTED(ioctl, fd, request, argument);
}
EGRET_EXPORT long syscall(long number, ...) noexcept {
  std::array<long, 6> arguments{};
  va_list rest;
  va_start(rest, number);
  for (long& each : arguments) each = va_arg(rest, long);
  va_end(rest);
  EGRET_COUNTED(syscall, number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
