#include "client/preload/real.h"

#include <dlfcn.h>

namespace egret::preload {

namespace {

template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

Real look_up() {
  Real found{};
  find(found.socket, "socket");
  find(found.connect, "connect");
  find(found.close, "close");
  find(found.shutdown, "shutdown");
  find(found.close_range, "close_range");
  find(found.send, "send");
  find(found.sendto, "sendto");
  find(found.sendmsg, "sendmsg");
  find(found.write, "write");
  find(found.writev, "writev");
  find(found.recv, "recv");
  find(found.recvfrom, "recvfrom");
  find(found.recvmsg, "recvmsg");
  find(found.read, "read");
  find(found.readv, "readv");
  find(found.poll, "poll");
  find(found.ppoll, "ppoll");
  find(found.select, "select");
  find(found.epoll_ctl, "epoll_ctl");
  return found;
}

RealRare look_up_rare() {
  RealRare found{};
  find(found.dlopen, "dlopen");
  find(found.dup, "dup");
  find(found.dup2, "dup2");
  find(found.dup3, "dup3");
  find(found.fcntl, "fcntl");
  find(found.ioctl, "ioctl");
  find(found.exit, "_exit");
  find(found.fdopen, "fdopen");
  find(found.fclose, "fclose");
  find(found.freopen, "freopen");
  find(found.freopen64, "freopen64");
  find(found.pselect, "pselect");
  return found;
}

}  // namespace

const Real& real() {
  static const Real found = look_up();
  return found;
}

const RealRare& real_rare() {
  static const RealRare found = look_up_rare();
  return found;
}

}  // namespace egret::preload
