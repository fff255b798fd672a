// A child process. The destructor sends SIGTERM (and SIGKILL 3 s later); the kernel sends SIGTERM if this process dies
// first. Start children only from the main thread: the kernel sends that signal when the thread that forked ends.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace egret::bench {

class ChildProcess {
 public:
  // arguments[0]: the program, looked up in PATH. Standard output and error go to the file `log_path`.
  static base::Expected<ChildProcess> start(const std::vector<std::string>& arguments, const std::string& log_path);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  const std::string& log_path() const { return log_path_; }
  bool has_ended();
  void signal(int number);  // does nothing if the child has ended
  void end();

 private:
  ChildProcess(pid_t pid, std::string log_path) : pid_(pid), log_path_(std::move(log_path)) {}

  pid_t pid_ = -1;
  std::string log_path_;
};

// A directory under the system's temporary one, readable by everybody. The destructor removes it with its contents.
class TemporaryFolder {
 public:
  static base::Expected<TemporaryFolder> make();

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  void remove();

  std::string path_;
};

}  // namespace egret::bench
