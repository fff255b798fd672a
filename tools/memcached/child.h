// One of the two daemons, as a child process.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::memcached {

// A daemon's program: beside this one, else on PATH. It is opened at once, so that it can still be run by a user who
// may not enter the directory it lies in (-u).
class Program {
 public:
  static base::Expected<Program> find(const std::string& name);

  // In the child only; returns when it failed, with errno.
  void execute(const std::vector<std::string>& arguments) const;

 private:
  std::string name_;
  std::string path_;
  base::UniqueFd file_;
};

class Child {
 public:
  explicit Child(Program program) : program_(std::move(program)) {}

  struct Surroundings {
    std::string notify_socket;  // NOTIFY_SOCKET
    bool silent = false;        // standard output and error go nowhere
  };
  // It gets a process group of its own, an empty signal mask and no descriptor but 0, 1 and 2; it is killed when this
  // process ends, however that is. One thread only may run here.
  base::Status start(const std::vector<std::string>& arguments, const Surroundings& surroundings);

  bool is_running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // True once it has ended; wait_status is waitpid's.
  bool reap(int& wait_status);

 private:
  Program program_;
  pid_t pid_ = 0;
};

}  // namespace egret::memcached
