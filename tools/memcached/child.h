// One of the two daemons, as a child process.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::memcached {

// A daemon's program: beside this one, else on PATH. It is opened at once, so that it can be executed after a change to
// a user who may not enter its directory (-u).
class Program {
 public:
  static base::Expected<Program> find(const std::string& name);

  // Call it in the child only. Returns only on failure, with errno.
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
    bool silent = false;        // standard output and error go to /dev/null
  };
  // The child gets its own process group, an empty signal mask and only the descriptors 0, 1 and 2. The kernel kills it
  // when this process ends in any way. This process must have only one thread.
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
