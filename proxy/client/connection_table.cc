#include "proxy/client/connection_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "memcache/reply.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

namespace {

constexpr std::array<std::string_view, 7> kStateNames = {
    "conn_new_cmd", "conn_read", "conn_nread", "conn_parse_cmd", "conn_io_queue", "conn_mwrite", "conn_closing"};

// Sorted by descriptor, as in memcached.
using Rows = std::vector<std::pair<int, std::string>>;

void add_rows(Rows& rows, int fd, std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text.append("STAT ").append(std::to_string(fd)).append(":").append(name);
    text.append(" ").append(value).append("\r\n");
  }
  rows.emplace_back(fd, std::move(text));
}

std::string seconds_between(uint64_t from_ns, uint64_t to_ns) {
  return std::to_string(to_ns > from_ns ? (to_ns - from_ns) / 1'000'000'000 : 0);
}

std::string unix_text(const sockaddr& address) {
  const char* const path = reinterpret_cast<const sockaddr_un&>(address).sun_path;
  const std::string_view name(path, ::strnlen(path, sizeof sockaddr_un::sun_path));
  return name.empty() ? "unix:<AF 1>" : "unix:" + std::string(name);
}

template <typename AskSystem>
std::string text_of_end(int fd, const AskSystem& ask) {
  sockaddr_storage address{};  // zeroed: a Unix socket's path ends there
  socklen_t length = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  return ask(fd, at, &length) == 0 ? address_text(*at) : std::string();
}

}  // namespace

std::string address_text(const sockaddr& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    return "tcp:" + std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
    return "tcp6:[" + std::string(host) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return unix_text(address);
}

std::string local_address_text(int fd) {
  return text_of_end(fd, ::getsockname);
}

std::string peer_address_text(int fd) {
  return text_of_end(fd, ::getpeername);
}

std::string connections_report(const ProxyState& source) {
  const uint64_t now_ns = source.clock->now_ns();
  Rows rows;
  const auto listeners = source.listeners.get();
  for (const ListenerRecord& listener : *listeners) {
    add_rows(rows, listener.fd,
             {{"addr", listener.address},
              {"state", "conn_listening"},
              {"secs_since_last_cmd", seconds_between(source.start_ns, now_ns)}});
  }
  for (const auto& worker : source.workers) {
    worker->connections.for_each([&](const ConnectionRecord& record) {
      add_rows(
          rows, record.fd,
          {{"addr", record.peer},
           {"listen_addr", record.listen},
           {"state", kStateNames[static_cast<size_t>(record.state.load(std::memory_order_relaxed))]},
           {"secs_since_last_cmd", seconds_between(record.last_active_ns.load(std::memory_order_relaxed), now_ns)}});
    });
  }
  std::ranges::sort(rows, {}, &Rows::value_type::first);
  std::string text;
  for (const auto& [fd, of_one] : rows) text += of_one;
  return text.append(memcache::kEnd);
}

}  // namespace egret::proxy
