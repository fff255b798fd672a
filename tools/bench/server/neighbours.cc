#include "bench/server/neighbours.h"

#include <cerrno>
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace egret::bench {
namespace {

[[noreturn]] void spin(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent died before the line above
  volatile uint64_t turns = 0;
  while (true) turns = turns + 1;
}

}  // namespace

base::Expected<Neighbours> Neighbours::start(uint32_t count) {
  Neighbours neighbours;
  const pid_t parent = ::getpid();
  for (uint32_t i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return base::Status::system_error("fork", errno);
    if (pid == 0) spin(parent);
    neighbours.pids_.push_back(pid);
  }
  return neighbours;
}

Neighbours::~Neighbours() {
  for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
  for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
}

}  // namespace egret::bench
