// A descriptor that this library makes for a while. A forked child closes it.
#pragma once

#include "base/unique_fd.h"
#include "client/process/fork.h"

namespace egret::preload {

class OwnFd {
 public:
  OwnFd() = default;
  ~OwnFd() {
    if (fd_.is_open()) client::ForkGuard::disown(fd_.get());
  }
  OwnFd(const OwnFd&) = delete;
  OwnFd& operator=(const OwnFd&) = delete;

  // `make_it` returns a descriptor, or a negative number.
  template <typename Make>
  void make(Make make_it) {
    const client::ForkGuard::Section section;
    fd_ = base::UniqueFd(make_it());
    if (fd_.is_open()) client::ForkGuard::own(fd_.get());
  }
  int get() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
};

}  // namespace egret::preload
