#include "bench/server/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr int kEndPolls = 300;  // of 10 ms
constexpr timespec kEndPoll{0, 10'000'000};
constexpr int kCannotRun = 127;

[[noreturn]] void become(char* const* arguments, int log_fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kCannotRun);  // the parent died before the line above
  ::dup2(log_fd, STDOUT_FILENO);
  ::dup2(log_fd, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(kCannotRun);
}

}  // namespace

Expected<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments, const std::string& log_path) {
  const base::UniqueFd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.is_open()) return Status::system_error("cannot open " + log_path, errno);
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers;
  pointers.reserve(copies.size() + 1);
  for (std::string& each : copies) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Status::system_error("fork", errno);
  if (pid == 0) become(pointers.data(), log.get(), parent);
  return ChildProcess(pid, log_path);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), log_path_(std::move(other.log_path_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    log_path_ = std::move(other.log_path_);
  }
  return *this;
}

ChildProcess::~ChildProcess() {
  end();
}

bool ChildProcess::has_ended() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

void ChildProcess::signal(int number) {
  if (!has_ended()) ::kill(pid_, number);
}

void ChildProcess::end() {
  if (has_ended()) return;
  ::kill(pid_, SIGTERM);
  for (int i = 0; i < kEndPolls; ++i) {
    if (has_ended()) return;
    ::nanosleep(&kEndPoll, nullptr);
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Expected<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "egret-bench.XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return Status::system_error("cannot create " + path, errno);
  ::chmod(path.c_str(), 0755);  // a daemon may give up root
  return TemporaryFolder(path);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  remove();
}

void TemporaryFolder::remove() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace egret::bench
