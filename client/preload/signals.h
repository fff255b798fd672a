// The program's signals while one of its threads waits here. A call of the kernel ends with EINTR when a handler runs in it; here a
// wait is several sleeps, and looks in between. So signals are held back meanwhile: none is lost between two sleeps, and no handler
// runs where a mutex is held.
//
// Thread: the one that waits.
#pragma once

#include <signal.h>

#include "client/preload/own_fd.h"

namespace egret::preload {

class Signals {
 public:
  Signals();
  ~Signals() { end(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // What the program holds back itself.
  const sigset_t& before() const { return before_; }
  // Readable while let_through() has something to do; negative: no descriptor could be made, and signals come behind the wait.
  int fd();
  // Runs the handlers of the signals that have come. No mutex may be held, and nothing may refer to the caller's stack, since a handler
  // may leave by longjmp(). Returns whether the call ends with EINTR. A call that the kernel would restart (`is_restarted`) goes on if
  // all these handlers have SA_RESTART; any other call ends.
  bool let_through(bool is_restarted);
  // The wait is over: as let_through(), and from now on they come as the program has it.
  void end();

 private:
  bool end_call(bool is_restarted) const;

  sigset_t before_;
  bool is_over_ = false;
  OwnFd fd_;
};

}  // namespace egret::preload
