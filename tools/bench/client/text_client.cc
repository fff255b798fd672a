#include "bench/client/text_client.h"

#include <array>
#include <cerrno>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/time.h>

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr double kStatsTimeout = 2;
constexpr double kServingTimeout = 1;

}  // namespace

Expected<std::string> exchange(const Address& address, const std::string& request, const std::string& terminator,
                               double timeout_s) {
  auto fd = connect_to(address);
  if (!fd) return fd.status();
  const auto whole = static_cast<time_t>(timeout_s);
  const timeval timeout{whole, static_cast<suseconds_t>((timeout_s - static_cast<double>(whole)) * 1e6)};
  ::setsockopt(fd.value().get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  if (::send(fd.value().get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return Status::system_error("send to " + address.to_string(), errno);
  }
  std::string answer;
  std::array<char, 4096> buffer{};
  while (!answer.ends_with(terminator)) {
    const ssize_t got = ::recv(fd.value().get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return Status::error("no complete answer from " + address.to_string());
    answer.append(buffer.data(), static_cast<size_t>(got));
    if (answer.find("ERROR") != std::string::npos) return Status::error(address.to_string() + " answers " + answer);
  }
  return answer;
}

Status check_serving(const Address& address) {
  return exchange(address, "get egret-bench-is-it-up\r\n", "END\r\n", kServingTimeout).status();
}

uint64_t read_stat(const Address& address, const std::string& name) {
  const auto answer = exchange(address, "stats\r\n", "END\r\n", kStatsTimeout);
  if (!answer) return 0;
  const std::string wanted = "STAT " + name + " ";
  const size_t at = answer.value().find(wanted);
  if (at == std::string::npos) return 0;
  return std::strtoull(answer.value().c_str() + at + wanted.size(), nullptr, 10);
}

}  // namespace egret::bench
