// A descriptor that becomes readable when there is something to look at. Shared by the thread that waits for it and those
// that have something to tell it: whoever has a reference may notify, whether the other one is still there or not.
// Thread-safe.
#pragma once

#include <cerrno>
#include <memory>

#include <sys/eventfd.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::transport::device {

class Notifier {
 public:
  static base::Expected<std::shared_ptr<Notifier>> make() {
    base::UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd.is_open()) return base::Status::system_error("eventfd", errno);
    return std::make_shared<Notifier>(std::move(fd));
  }
  explicit Notifier(base::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // What was written before this is seen by whoever reset() after it.
  void notify() const { ::eventfd_write(fd_.get(), 1); }
  // Before looking at what there is.
  void reset() const {
    eventfd_t ignored = 0;
    ::eventfd_read(fd_.get(), &ignored);
  }

 private:
  base::UniqueFd fd_;
};

}  // namespace egret::transport::device
