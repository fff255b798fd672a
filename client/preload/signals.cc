#include "client/preload/signals.h"

#include <utility>

#include <sys/signalfd.h>

#include "client/preload/inside.h"

namespace egret::preload {

namespace {

void hold_back_all(sigset_t* before) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, before);
}

bool has_handler(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) != 0) return true;
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

}  // namespace

Signals::Signals() {
  hold_back_all(&before_);
}

int Signals::fd() {
  if (fd_.get() >= 0) return fd_.get();
  sigset_t awaited;
  ::sigemptyset(&awaited);
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&before_, number) == 0) ::sigaddset(&awaited, number);
  }
  fd_.make([&] { return ::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK); });
  return fd_.get();
}

bool Signals::let_through(bool is_restarted) {
  const bool ends = end_call(is_restarted);
  const InProgram handlers;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  hold_back_all(nullptr);
  return ends;
}

void Signals::end() {
  if (std::exchange(is_over_, true)) return;
  const InProgram handlers;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Signals::end_call(bool is_restarted) const {
  sigset_t pending;
  ::sigpending(&pending);
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&pending, number) != 1 || ::sigismember(&before_, number) != 0) continue;
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || !has_handler(action)) continue;
    if (!is_restarted || (action.sa_flags & SA_RESTART) == 0) return true;
  }
  return false;
}

}  // namespace egret::preload
