#include "base/signals.h"

#include <cerrno>
#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>

namespace egret::base {

Expected<SignalSource> SignalSource::create(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int each : signals) sigaddset(&set, each);
  if (const int problem = pthread_sigmask(SIG_BLOCK, &set, nullptr); problem != 0) {
    return Status::system_error("cannot block signals", problem);
  }
  std::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.is_open()) return Status::system_error("cannot make a signal descriptor", errno);
  return SignalSource(std::move(fd));
}

std::optional<int> SignalSource::take() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace egret::base
