#include "bench/client/idle_connections.h"

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr std::string_view kRequest = "get egret-bench-is-idle\r\n";
constexpr std::string_view kAnswer = "END\r\n";
constexpr timeval kPatience{5, 0};

Status ask_once(int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  if (::send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(kRequest.size())) {
    return Status::system_error("send", errno);
  }
  std::array<char, kAnswer.size()> answer{};
  if (::recv(fd, answer.data(), answer.size(), MSG_WAITALL) != static_cast<ssize_t>(answer.size())) {
    return Status::error("no answer came within 5 s");
  }
  const std::string_view text(answer.data(), answer.size());
  return text == kAnswer ? Status::ok() : Status::error("a get of nothing is answered " + std::string(text));
}

}  // namespace

Expected<IdleConnections> IdleConnections::open(const Address& address, uint32_t count) {
  IdleConnections idle;
  for (uint32_t i = 0; i < count; ++i) {
    auto fd = connect_to(address);
    if (!fd) return fd.status();
    if (Status status = ask_once(fd.value().get()); !status) {
      return Status::error("idle connection " + std::to_string(i + 1) + ": " + status.message());
    }
    idle.fds_.push_back(std::move(fd.value()));
  }
  return idle;
}

Status IdleConnections::check() const {
  for (const base::UniqueFd& fd : fds_) {
    char byte = 0;
    const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    if (got >= 0 || errno != EAGAIN) {
      return Status::error(got > 0 ? "an idle connection was sent something" : "an idle connection was closed");
    }
  }
  return Status::ok();
}

uint64_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace egret::bench
