// An egret-proxy of the build, as a process of its own, that serves memcached clients at a Unix socket, and slots beside it.
//
// Ended by its own id with the object. Thread: one.
#pragma once

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

class ProxyProcess {
 public:
  // `options`: NAME=VALUE, of egret-proxy.
  explicit ProxyProcess(std::vector<std::string> options, bool starts = true) : options_(std::move(options)) {
    char name[] = "/tmp/egret-client-proxy-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder_ = name;
    if (starts) start();
  }
  ~ProxyProcess() {
    end(SIGKILL);
    for (const char* const each : {"/m", "/m.slots"}) ::unlink((folder_ + each).c_str());
    ::rmdir(folder_.c_str());
  }
  ProxyProcess(const ProxyProcess&) = delete;
  ProxyProcess& operator=(const ProxyProcess&) = delete;

  // As the option `proxy` of libegret.
  std::string address() const { return "unix:" + folder_ + "/m"; }

  void start() {
    std::vector<std::string> words{program(), "--config", "/dev/null", "--set", "listen=unix:" + folder_ + "/m"};
    for (const char* const fixed : {"admin=", "workers=2", "pin=off"}) words.insert(words.end(), {"--set", fixed});
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
  // Returns when it has gone.
  void end(int number) {
    if (pid_ <= 0) return;
    signal(number);
    if (number == SIGKILL) signal(SIGCONT);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  static std::string program() {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    const std::string path(self, length > 0 ? static_cast<size_t>(length) : 0);
    return path.substr(0, path.rfind('/') + 1) + "egret-proxy";
  }

  std::string folder_;
  const std::vector<std::string> options_;
  pid_t pid_ = 0;
};
