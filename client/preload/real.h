// The functions of libc that this library stands before.
//
// Thread: any, from the first call on.
#pragma once

#include <cstddef>
#include <cstdio>

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace egret::preload {

struct Real {
  int (*socket)(int, int, int);
  int (*connect)(int, const sockaddr*, socklen_t);
  int (*close)(int);
  int (*shutdown)(int, int);
  int (*close_range)(unsigned, unsigned, int);  // null: this libc has none
  ssize_t (*send)(int, const void*, size_t, int);
  ssize_t (*sendto)(int, const void*, size_t, int, const sockaddr*, socklen_t);
  ssize_t (*sendmsg)(int, const msghdr*, int);
  ssize_t (*write)(int, const void*, size_t);
  ssize_t (*writev)(int, const iovec*, int);
  ssize_t (*recv)(int, void*, size_t, int);
  ssize_t (*recvfrom)(int, void*, size_t, int, sockaddr*, socklen_t*);
  ssize_t (*recvmsg)(int, msghdr*, int);
  ssize_t (*read)(int, void*, size_t);
  ssize_t (*readv)(int, const iovec*, int);
  int (*poll)(pollfd*, nfds_t, int);
  int (*ppoll)(pollfd*, nfds_t, const timespec*, const sigset_t*);
  int (*select)(int, fd_set*, fd_set*, fd_set*, timeval*);
  int (*epoll_ctl)(int, int, int, epoll_event*);
};
const Real& real();

// The same, of those that are rarely called.
struct RealRare {
  void* (*dlopen)(const char*, int);
  int (*dup)(int);
  int (*dup2)(int, int);
  int (*dup3)(int, int, int);
  int (*fcntl)(int, int, ...);
  int (*ioctl)(int, unsigned long, ...);
  void (*exit)(int);  // _exit
  FILE* (*fdopen)(int, const char*);
  int (*fclose)(FILE*);
  FILE* (*freopen)(const char*, const char*, FILE*);
  FILE* (*freopen64)(const char*, const char*, FILE*);
  int (*pselect)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*);
};
const RealRare& real_rare();

}  // namespace egret::preload
