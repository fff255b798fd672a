#include "memcached/child.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace egret::memcached {

using base::Status;

namespace {

constexpr int kCannotRun = 127;

std::vector<std::string> places() {
  std::vector<std::string> folders;
  std::error_code unreadable;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  if (!unreadable) folders.push_back(own.parent_path().string());
  const char* const path = std::getenv("PATH");
  for (std::string& folder : base::split(path == nullptr ? "" : path, ':')) folders.push_back(std::move(folder));
  return folders;
}

void become_daemon_process(pid_t parent, bool silent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotRun);  // the parent has ended meanwhile
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDIN_FILENO);
  if (silent) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  ::close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
}

}  // namespace

base::Expected<Program> Program::find(const std::string& name) {
  for (const std::string& folder : places()) {
    Program program;
    program.name_ = name;
    program.path_ = std::filesystem::absolute(std::filesystem::path(folder) / name).string();
    if (::access(program.path_.c_str(), X_OK) != 0) continue;
    program.file_.reset(::open(program.path_.c_str(), O_PATH | O_CLOEXEC));
    if (program.file_.is_open()) return program;
  }
  return Status::error(name + " is neither beside this program nor on PATH");
}

void Program::execute(const std::vector<std::string>& arguments) const {
  std::vector<char*> argv = {const_cast<char*>(name_.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(path_.c_str(), argv.data());
  if (errno == EACCES) ::fexecve(file_.get(), argv.data(), environ);
}

Status Child::start(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Status::system_error("cannot fork", errno);
  if (pid == 0) {
    become_daemon_process(parent, surroundings.silent);
    ::setenv("NOTIFY_SOCKET", surroundings.notify_socket.c_str(), 1);
    ::unsetenv("FDSTORE");  // it is our supervisor's; we store no descriptors for the daemon
    program_.execute(arguments);
    ::_exit(kCannotRun);
  }
  pid_ = pid;
  return Status::ok();
}

void Child::signal(int number) const {
  if (is_running()) ::kill(pid_, number);
}

bool Child::reap(int& wait_status) {
  if (!is_running() || ::waitpid(pid_, &wait_status, WNOHANG) != pid_) return false;
  pid_ = 0;
  return true;
}

}  // namespace egret::memcached
