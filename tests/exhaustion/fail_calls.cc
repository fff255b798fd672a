// libegret_fail_calls.so, for LD_PRELOAD: makes calls to the system fail, as they do when a limit is exhausted.
//
//   EGRET_FAIL_CALLS_FILE   the file of counters and rules (call_file.h), which a test changes while the program runs;
//                           "%p" becomes the process id
//   EGRET_FAIL_CALLS        CALL:N[,CALL:N ...]: the Nth call of that kind fails, counted from the program's start
//
//   the program, libevent, libmicrohttpd ─ open() ─▶ here: must_fail(kOpen)? ─ no ─▶ libc's open()
//                                                          └ yes ─▶ -1, errno as the system would set it
//
// A call fails before it reaches the system, with one of the errors that mean "there is no more of it". Calls that the
// system never refuses for want of something pass: epoll_ctl to modify and to remove, fcntl for anything but seals. Calls
// that libc makes within itself (malloc's memory, threads' stacks) are not seen. Threads: any.
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../before_libc.h"
#include "call_file.h"

namespace egret::exhaustion {
namespace {

// Whether this call fails. If so, errno is one of `errors`, in turn.
bool fails(Call call, std::initializer_list<int> errors) {
  const uint64_t number = count_call(call);
  if (!must_fail(call, number)) return false;
  errno = errors.begin()[number % errors.size()];
  return true;
}

constexpr std::initializer_list<int> kNoDescriptor = {EMFILE, ENFILE, ENOMEM};

bool fails_open() {
  return fails(Call::kOpen, kNoDescriptor);
}

bool takes_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

}  // namespace
}  // namespace egret::exhaustion

using egret::original;
using namespace egret::exhaustion;  // NOLINT(google-build-using-namespace): what follows is C's namespace

// --- files

EGRET_EXPORT int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails_open() ? -1 : original<int(const char*, int, ...)>("open")(path, flags, mode);
}

EGRET_EXPORT int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails_open() ? -1 : original<int(const char*, int, ...)>("open64")(path, flags, mode);
}

EGRET_EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails_open() ? -1 : original<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

// What open() becomes when it is compiled with _FORTIFY_SOURCE.
EGRET_EXPORT int __open_2(const char* path, int flags) {
  return fails_open() ? -1 : original<int(const char*, int)>("__open_2")(path, flags);
}

EGRET_EXPORT int __open64_2(const char* path, int flags) {
  return fails_open() ? -1 : original<int(const char*, int)>("__open64_2")(path, flags);
}

EGRET_EXPORT FILE* fopen(const char* path, const char* mode) {
  return fails_open() ? nullptr : original<FILE*(const char*, const char*)>("fopen")(path, mode);
}

EGRET_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return fails_open() ? nullptr : original<FILE*(const char*, const char*)>("fopen64")(path, mode);
}

EGRET_EXPORT int posix_fallocate(int fd, off_t offset, off_t length) {
  if (fails(Call::kPosixFallocate, {ENOSPC})) return errno;
  return original<int(int, off_t, off_t)>("posix_fallocate")(fd, offset, length);
}

EGRET_EXPORT int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  if (fails(Call::kPosixFallocate, {ENOSPC})) return errno;
  return original<int(int, off64_t, off64_t)>("posix_fallocate64")(fd, offset, length);
}

EGRET_EXPORT int memfd_create(const char* name, unsigned flags) noexcept {
  if (fails(Call::kMemfdCreate, kNoDescriptor)) return -1;
  return original<int(const char*, unsigned)>("memfd_create")(name, flags);
}

EGRET_EXPORT int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (command == F_ADD_SEALS && fails(Call::kAddSeals, {EBUSY, EPERM})) return -1;
  return original<int(int, int, ...)>("fcntl")(fd, command, argument);
}

EGRET_EXPORT int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (command == F_ADD_SEALS && fails(Call::kAddSeals, {EBUSY, EPERM})) return -1;
  return original<int(int, int, ...)>("fcntl64")(fd, command, argument);
}

// --- memory

EGRET_EXPORT void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  if (fails(Call::kMmap, {ENOMEM})) return MAP_FAILED;
  return original<void*(void*, size_t, int, int, int, off_t)>("mmap")(at, length, protection, flags, fd, offset);
}

EGRET_EXPORT void* mmap64(void* at, size_t length, int protection, int flags, int fd, off64_t offset) noexcept {
  if (fails(Call::kMmap, {ENOMEM})) return MAP_FAILED;
  return original<void*(void*, size_t, int, int, int, off64_t)>("mmap64")(at, length, protection, flags, fd, offset);
}

// --- sockets

EGRET_EXPORT int socket(int domain, int type, int protocol) noexcept {
  if (fails(Call::kSocket, {EMFILE, ENFILE, ENOBUFS, ENOMEM})) return -1;
  return original<int(int, int, int)>("socket")(domain, type, protocol);
}

EGRET_EXPORT int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
  if (fails(Call::kSocket, kNoDescriptor)) return -1;
  return original<int(int, int, int, int*)>("socketpair")(domain, type, protocol, ends);
}

EGRET_EXPORT int accept(int socket, sockaddr* address, socklen_t* length) {
  if (fails(Call::kAccept, {EMFILE, ENFILE, ENOBUFS, ENOMEM})) return -1;
  return original<int(int, sockaddr*, socklen_t*)>("accept")(socket, address, length);
}

EGRET_EXPORT int accept4(int socket, sockaddr* address, socklen_t* length, int flags) {
  if (fails(Call::kAccept, {EMFILE, ENFILE, ENOBUFS, ENOMEM})) return -1;
  return original<int(int, sockaddr*, socklen_t*, int)>("accept4")(socket, address, length, flags);
}

// --- waiting, and threads

EGRET_EXPORT int epoll_create(int size) noexcept {
  return fails(Call::kEpollCreate, kNoDescriptor) ? -1 : original<int(int)>("epoll_create")(size);
}

EGRET_EXPORT int epoll_create1(int flags) noexcept {
  return fails(Call::kEpollCreate, kNoDescriptor) ? -1 : original<int(int)>("epoll_create1")(flags);
}

EGRET_EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && fails(Call::kEpollCtl, {ENOSPC, ENOMEM})) return -1;
  return original<int(int, int, int, epoll_event*)>("epoll_ctl")(epoll, operation, fd, event);
}

EGRET_EXPORT int eventfd(unsigned value, int flags) noexcept {
  return fails(Call::kEventfd, kNoDescriptor) ? -1 : original<int(unsigned, int)>("eventfd")(value, flags);
}

EGRET_EXPORT int timerfd_create(clockid_t clock, int flags) noexcept {
  return fails(Call::kTimerfdCreate, kNoDescriptor) ? -1
                                                    : original<int(clockid_t, int)>("timerfd_create")(clock, flags);
}

EGRET_EXPORT int pipe(int ends[2]) noexcept {
  return fails(Call::kPipe, {EMFILE, ENFILE}) ? -1 : original<int(int*)>("pipe")(ends);
}

EGRET_EXPORT int pipe2(int ends[2], int flags) noexcept {
  return fails(Call::kPipe, {EMFILE, ENFILE}) ? -1 : original<int(int*, int)>("pipe2")(ends, flags);
}

EGRET_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                void* argument) noexcept {
  if (fails(Call::kPthreadCreate, {EAGAIN})) return errno;
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return original<Create>("pthread_create")(thread, attributes, run, argument);
}
