#include "proxy/slots/slot_mail.h"

#include <cerrno>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace egret::proxy {

SlotMail::SlotMail() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_.is_open()) throw std::system_error(errno, std::system_category(), "eventfd");
}

void SlotMail::ended(uint64_t session) {
  {
    const std::lock_guard lock(mutex_);
    ended_.push_back(session);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

std::vector<uint64_t> SlotMail::take() {
  uint64_t rung = 0;
  [[maybe_unused]] const ssize_t read = ::read(bell_.get(), &rung, sizeof rung);
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

}  // namespace egret::proxy
