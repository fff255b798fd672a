#include "memcached/background.h"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

#include "memcached/request.h"

namespace egret::memcached {

std::optional<Background> Background::enter(Keep keep) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  Background background;
  background.keep_ = keep;
  const pid_t child = ::fork();
  if (child < 0) return {};
  background.is_parent_ = child > 0;
  background.pipe_ = std::move(background.is_parent_ ? reading : writing);
  if (background.is_parent_) return background;
  ::setsid();
  if (!keep.keep_directory && ::chdir("/") != 0) return {};
  return background;
}

int Background::wait_for_child() {
  uint8_t status = kFailure;
  ssize_t size = 0;
  do {
    size = ::read(pipe_.get(), &status, 1);
  } while (size < 0 && errno == EINTR);
  return size == 1 ? status : kFailure;  // no byte: the child died
}

void Background::report_ready() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDIN_FILENO);
  if (!keep_.keep_output) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  ::close(nowhere);
  report_failure(0);
}

void Background::report_failure(int status) {
  const auto byte = static_cast<uint8_t>(status);
  if (pipe_.is_open()) [[maybe_unused]]
    const ssize_t written = ::write(pipe_.get(), &byte, 1);
  pipe_.reset();
}

}  // namespace egret::memcached
