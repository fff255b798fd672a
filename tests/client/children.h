// Children that a test forks.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

// -1: it did not end by itself.
inline int exit_code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Forks a child that outlives its parent: it ends when nobody has the writing end of `pipe` any more.
inline void leave_child_behind(const int (&pipe)[2]) {
  if (::fork() != 0) return;
  ::close(pipe[1]);
  char byte;
  [[maybe_unused]] const ssize_t got = ::read(pipe[0], &byte, 1);
  ::_exit(0);
}
