// An egret-backend of the build, as a process of its own, reached over shared memory or TCP on loopback.
//
// Ended by its own id with the object. Thread: one.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

class BackendProcess {
 public:
  enum class Over : uint8_t { kShm, kTcp };

  explicit BackendProcess(std::vector<std::string> more = {}, Over over = Over::kShm) : more_(std::move(more)) {
    char name[] = "/tmp/egret-client-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder_ = name;
    address_ = over == Over::kTcp ? "tcp:127.0.0.1:" + std::to_string(free_port()) : "shm:" + folder_ + "/backend";
    start();
  }
  ~BackendProcess() {
    end(SIGKILL);
    ::unlink((folder_ + "/backend").c_str());
    ::rmdir(folder_.c_str());
  }
  BackendProcess(const BackendProcess&) = delete;
  BackendProcess& operator=(const BackendProcess&) = delete;

  const std::string& address() const { return address_; }

  // With an empty store.
  void start() {
    std::vector<std::string> words{program(),        "--config", "/dev/null",   "--set",        "listen=" + address_,
                                   "--set",          "admin=",   "--set",       "memory=64MiB", "--set",
                                   "populate=false", "--set",    "partitions=2"};
    for (const std::string& option : more_) {
      words.push_back("--set");
      words.push_back(option);
    }
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

 private:
  static uint16_t free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    ::close(fd);
    return ntohs(address.sin_port);
  }
  static std::string program() {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    const std::string path(self, length > 0 ? static_cast<size_t>(length) : 0);
    return path.substr(0, path.rfind('/') + 1) + "egret-backend";
  }

  std::string folder_, address_;
  const std::vector<std::string> more_;
  pid_t pid_ = 0;
};
