#include "memcached/launcher.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/local/peer_socket.h"
#include "base/random.h"
#include "base/service/notify.h"
#include "base/text.h"
#include "memcached/request.h"

namespace egret::memcached {

using base::Status;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kProxyStopSeconds = 5;     // usually less than one
constexpr uint64_t kBackendStopSeconds = 60;  // it may have to save items to files
constexpr size_t kMaxNotice = 4096;

uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGHUP}) sigaddset(&set, number);
  return set;
}

// An address that no other instance has and that nobody can guess and bind before us.
std::string unique_address() {
  char text[64];
  std::snprintf(text, sizeof text, "@egret-memcached-%d-%016lx", ::getpid(), base::random_u64());
  return text;
}

base::UniqueFd notice_socket(const std::string& address) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, address.data() + 1, address.size() - 1);  // abstract: '\0' for '@'
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  if (!socket.is_open() || ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), length) != 0) {
    return {};
  }
  base::refuse_descriptors(socket.get());  // anybody on this host may write to it
  return socket;
}

void say(const std::string& line) {
  std::fprintf(stderr, "egret-memcached: %s\n", line.c_str());
}

}  // namespace

std::vector<std::string> addresses_of(const std::string& notice) {
  std::vector<std::string> addresses;
  for (const std::string& line : base::split(notice, '\n')) {
    if (line.starts_with(base::kNotifyListening)) addresses.push_back(line.substr(base::kNotifyListening.size()));
  }
  return addresses;
}

void block_signals() {
  const sigset_t awaited = awaited_signals();
  ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
}

Launcher::Launcher(LaunchOptions options, Program backend, Program proxy,
                   std::function<void(const std::vector<std::string>&)> on_ready)
    : options_(std::move(options)),
      backend_(std::move(backend)),
      proxy_(std::move(proxy)),
      on_ready_(std::move(on_ready)),
      address_(unique_address()) {}

Status Launcher::open() {
  const sigset_t awaited = awaited_signals();
  signals_.reset(::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  notices_ = notice_socket(address_ + "-notices");
  if (!signals_.is_open() || !notices_.is_open()) return Status::system_error("cannot watch the daemons", errno);
  std::vector<std::string> arguments = options_.backend_arguments;
  std::string listen = "listen=shm:" + address_;
  for (const std::string& further : options_.listen) listen.append(",").append(further);
  arguments.insert(arguments.end(), {"--set", listen});
  return backend_.start(arguments, {.notify_socket = address_ + "-notices", .silent = options_.silent});
}

Status Launcher::start_proxy() {
  std::vector<std::string> arguments = options_.proxy_arguments;
  arguments.insert(arguments.end(), {"--set", "backends=shm:" + address_});
  return proxy_.start(arguments, {.notify_socket = address_ + "-notices", .silent = options_.silent});
}

int Launcher::run() {
  if (Status started = open(); !started) {
    say(started.message());
    return kFailure;
  }
  while (state_ != State::kEnded) {
    wait();
    on_notices();
    on_signals();
  }
  return exit_status_;
}

void Launcher::wait() {
  pollfd awaited[] = {{signals_.get(), POLLIN, 0}, {notices_.get(), POLLIN, 0}};
  int timeout_ms = -1;
  if (deadline_ns_ != 0) {
    const uint64_t now = now_ns();
    timeout_ms = deadline_ns_ > now ? static_cast<int>((deadline_ns_ - now) / 1'000'000 + 1) : 0;
  }
  ::poll(awaited, std::size(awaited), timeout_ms);
  if (deadline_ns_ != 0 && now_ns() >= deadline_ns_) {
    deadline_ns_ = 0;
    say("a daemon does not end; it is killed");
    (state_ == State::kProxyStops ? proxy_ : backend_).signal(SIGKILL);
  }
}

void Launcher::on_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    switch (info.ssi_signo) {
      case SIGCHLD:
        reap();
        break;
      case SIGHUP:
        proxy_.signal(SIGHUP);
        break;
      default:
        stop();
    }
  }
}

void Launcher::on_notices() {
  char text[kMaxNotice];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  for (;;) {
    iovec buffer{text, sizeof text};
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = ::recvmsg(notices_.get(), &message, MSG_CMSG_CLOEXEC);
    if (size < 0) return;
    const cmsghdr* const head = CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(head), sizeof sender);
    on_notice(sender.pid, std::string(text, static_cast<size_t>(size)));
  }
}

void Launcher::on_notice(pid_t sender, const std::string& text) {
  bool is_ready = false;
  for (const std::string& line : base::split(text, '\n')) {
    if (line == base::kNotifyReady) is_ready = true;
    if (line == base::kNotifyCannotListen) cannot_listen_ = true;
    if (line.starts_with(base::kNotifyStatus)) complaint_ = line.substr(base::kNotifyStatus.size());
  }
  if (!is_ready) return;
  if (state_ == State::kBackendStarts && sender == backend_.pid()) {
    state_ = State::kProxyStarts;
    if (Status started = start_proxy(); !started) {
      say(started.message());
      exit_status_ = kFailure;
      stop();
    }
  } else if (state_ == State::kProxyStarts && sender == proxy_.pid()) {
    state_ = State::kServing;
    on_ready_(addresses_of(text));
  }
}

void Launcher::reap() {
  int wait_status = 0;
  if (proxy_.reap(wait_status)) on_proxy_end(wait_status);
  if (backend_.reap(wait_status)) on_backend_end(wait_status);
}

void Launcher::on_proxy_end(int wait_status) {
  on_notices();  // the reason, if it sent one
  if (state_ == State::kServing && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
    // A client's `shutdown`: a requested stop.
  } else if (state_ == State::kServing || state_ == State::kProxyStarts) {
    blame("egret-proxy", wait_status);
  }
  go_on_stopping();
}

void Launcher::on_backend_end(int wait_status) {
  on_notices();
  if (state_ != State::kBackendStops) blame("egret-backend", wait_status);
  if (state_ == State::kProxyStops || state_ == State::kBackendStops) {
    go_on_stopping();
  } else {
    stop();
  }
}

void Launcher::blame(const char* name, int wait_status) {
  exit_status_ = cannot_listen_ ? kSystem : kFailure;
  // Unless it is silent, the daemon has printed its message itself.
  if (options_.silent && !complaint_.empty()) std::fprintf(stderr, "%s\n", complaint_.c_str());
  if (cannot_listen_) {
    std::fprintf(stderr, "failed to listen on %s\n", options_.where.c_str());
  } else if (WIFSIGNALED(wait_status)) {
    say(std::string(name) + " ended by signal " + std::to_string(WTERMSIG(wait_status)));
  } else {
    say(std::string(name) + " ended with status " + std::to_string(WEXITSTATUS(wait_status)));
  }
}

void Launcher::stop() {
  if (state_ >= State::kProxyStops) return;
  state_ = State::kProxyStops;
  proxy_.signal(SIGTERM);
  expect_end_within(kProxyStopSeconds);
  if (!proxy_.is_running()) go_on_stopping();
}

void Launcher::go_on_stopping() {
  if (proxy_.is_running()) return;
  if (state_ < State::kBackendStops) {
    state_ = State::kBackendStops;
    backend_.signal(SIGTERM);
    expect_end_within(kBackendStopSeconds);
  }
  if (!backend_.is_running()) state_ = State::kEnded;
}

void Launcher::expect_end_within(uint64_t seconds) {
  deadline_ns_ = now_ns() + seconds * kSecond;
}

}  // namespace egret::memcached
