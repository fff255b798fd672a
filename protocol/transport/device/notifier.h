// A descriptor that becomes readable when there is something to look at. Shared by the thread that waits for it and those
// that have something to tell it: whoever has a reference may notify, whether the other one is still there or not.
// Thread-safe.
#pragma once

#include <atomic>
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
  void notify() const {
    ::eventfd_write(fd_.get(), 1);
    is_pending_.store(true, std::memory_order_release);  // last: whoever resets reads what was written
  }
  // Somebody has notified since the last reset(). It costs no system call.
  bool is_pending() const { return is_pending_.load(std::memory_order_acquire); }
  // Before looking at what there is. A system call, if somebody has notified.
  void reset() const {
    if (!is_pending_.exchange(false, std::memory_order_acq_rel)) return;
    eventfd_t ignored = 0;
    ::eventfd_read(fd_.get(), &ignored);
  }

 private:
  base::UniqueFd fd_;
  mutable std::atomic<bool> is_pending_{false};
};

}  // namespace egret::transport::device
