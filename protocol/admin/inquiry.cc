#include "admin/inquiry.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace egret::admin {

using base::Expected;
using base::Status;
using base::UniqueFd;

namespace {

using Clock = std::chrono::steady_clock;

// Whether the socket is ready for that, in time.
bool wait_for(int socket, short what, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd ready{socket, what, 0};
  return left > 0 && ::poll(&ready, 1, static_cast<int>(left)) > 0;
}

UniqueFd connect_to(const sockaddr* address, socklen_t length, Clock::time_point until) {
  UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (::connect(socket.get(), address, length) == 0) return socket;
  if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, until)) return {};
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(socket) : UniqueFd();
}

UniqueFd connect_unix(const std::string& path, Clock::time_point until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // parse_address() has checked its length
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, until);
}

UniqueFd connect_tcp(const Address& address, Clock::time_point until) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const char* const host = address.host == "*" ? nullptr : address.host.c_str();  // null: this host
  if (::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    UniqueFd socket = connect_to(at->ai_addr, at->ai_addrlen, until);
    if (socket.is_open()) return socket;
  }
  return {};
}

bool send_all(int socket, std::string_view text, Clock::time_point until) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN || !wait_for(socket, POLLOUT, until)) {
      return false;
    }
  }
  return true;
}

std::string receive_all(int socket, Clock::time_point until) {
  std::string answer;
  char part[4096];
  while (answer.size() < kMostAnswer && wait_for(socket, POLLIN, until)) {
    const ssize_t got = ::recv(socket, part, sizeof part, 0);
    if (got <= 0) break;
    answer.append(part, static_cast<size_t>(got));
  }
  return answer;
}

}  // namespace

Expected<std::string> ask(const Address& address, std::string_view path) {
  const Clock::time_point until = Clock::now() + std::chrono::milliseconds(kMostMs);
  const UniqueFd socket = address.is_unix() ? connect_unix(address.path, until) : connect_tcp(address, until);
  if (!socket.is_open()) return Status::error("nobody serves at " + address.to_string());
  // HTTP/1.0: the connection ends with the answer.
  const std::string request = "GET " + std::string(path) + " HTTP/1.0\r\nHost: localhost\r\n\r\n";
  if (!send_all(socket.get(), request, until)) return Status::error(address.to_string() + " takes no request");
  std::string answer = receive_all(socket.get(), until);
  const size_t head = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/") || head == std::string::npos) {
    return Status::error(address.to_string() + " does not answer");
  }
  return answer.substr(head + 4);
}

}  // namespace egret::admin
