// A daemon of the build, as a process of its own in a folder of its own.
//
// Ended by its own id with the object. Thread: one.
#pragma once

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

class DaemonProcess {
 public:
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  void start() {
    std::vector<std::string> words{program(), "--config", "/dev/null"};
    for (const std::string& option : options_) words.insert(words.end(), {"--set", option});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1}) ::dup2(nowhere, fd);
    if (std::getenv("EGRET_TEST_LOG") == nullptr) ::dup2(nowhere, 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Returns when it stands still.
  void halt() const {
    signal(SIGSTOP);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOWAIT);
  }
  // Returns when it has gone.
  void end(int number) {
    if (pid_ <= 0) return;
    signal(number);
    if (number == SIGKILL) signal(SIGCONT);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 protected:
  explicit DaemonProcess(std::string name) : name_(std::move(name)) {
    char made[] = "/tmp/egret-client-test-XXXXXX";
    REQUIRE(::mkdtemp(made) != nullptr);
    folder_ = made;
  }
  ~DaemonProcess() {
    end(SIGKILL);
    for (const std::string& file : files_) ::unlink((folder_ + "/" + file).c_str());
    ::rmdir(folder_.c_str());
  }
  const std::string& folder() const { return folder_; }
  // Before start(): NAME=VALUE for each option, and the names of sockets that it makes in its folder.
  void use(std::vector<std::string> options, std::vector<std::string> files) {
    options_ = std::move(options);
    files_ = std::move(files);
  }

 private:
  std::string program() const {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    const std::string path(self, length > 0 ? static_cast<size_t>(length) : 0);
    return path.substr(0, path.rfind('/') + 1) + name_;
  }

  const std::string name_;
  std::string folder_;
  std::vector<std::string> options_, files_;
  pid_t pid_ = 0;
};
