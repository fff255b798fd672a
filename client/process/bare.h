// System calls of a forked child, before its handlers are through: libc's functions of these names may be those of
// libegret-preload.so, which holds its mutex until then.
#pragma once

#include <cstddef>

#include <sys/syscall.h>
#include <unistd.h>

namespace egret::client::bare {

inline void close(int fd) {
  ::syscall(SYS_close, fd);
}

inline void dup3(int from, int to, int flags) {
  ::syscall(SYS_dup3, from, to, flags);
}

inline ssize_t read(int fd, void* to, size_t room) {
  return ::syscall(SYS_read, fd, to, room);
}

}  // namespace egret::client::bare
