#include "proxy/client/connection_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "memcache/reply.h"
#include "memcache/uri.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

namespace {

constexpr std::array<std::string_view, 7> kStateNames = {
    "conn_new_cmd", "conn_read", "conn_nread", "conn_parse_cmd", "conn_io_queue", "conn_mwrite", "conn_closing"};

void add_values(std::string& text, int fd,
                std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  for (const auto& [name, value] : values) {
    text.append("STAT ").append(std::to_string(fd)).append(":").append(name);
    text.append(" ").append(value).append("\r\n");
  }
}

std::string seconds_between(uint64_t from_ns, uint64_t to_ns) {
  return std::to_string(to_ns > from_ns ? (to_ns - from_ns) / 1'000'000'000 : 0);
}

std::string unix_text(const sockaddr& address) {
  const char* const path = reinterpret_cast<const sockaddr_un&>(address).sun_path;
  const std::string_view name(path, ::strnlen(path, sizeof sockaddr_un::sun_path));
  if (name.empty()) return "unix:<AF 1>";
  std::string text = "unix:";
  memcache::append_shown(text, name);
  return text;
}

// By descriptor, as memcached's.
class ConnectionsReport final : public PagedReport {
 public:
  explicit ConnectionsReport(const ProxyState& source) : source_(source) {}

  // The rows of the lowest descriptors above those that have been told of, of all listeners and workers.
  bool next(std::string& text) override {
    const uint64_t now_ns = source_.clock->now_ns();
    std::vector<std::pair<int, std::string>> found;
    const auto listeners = source_.listeners.get();
    for (const ListenerRecord& listener : *listeners) {
      if (listener.fd > last_) add_rows(found.emplace_back(listener.fd, "").second, listener, now_ns);
    }
    for (const auto& worker : source_.workers) {
      worker->connections.visit_above(last_, kPage, [&](const ConnectionRecord& record) {
        add_rows(found.emplace_back(record.fd, "").second, record, now_ns);
      });
    }
    std::ranges::sort(found, {}, &std::pair<int, std::string>::first);
    found.resize(std::min(found.size(), kPage));
    for (const auto& [fd, rows] : found) text += rows;
    if (found.size() == kPage) {
      last_ = found.back().first;
      return true;
    }
    text.append(memcache::kEnd);
    return false;
  }

 private:
  static constexpr size_t kPage = 64;  // connections, of some 150 bytes each

  void add_rows(std::string& text, const ListenerRecord& listener, uint64_t now_ns) const {
    add_values(text, listener.fd,
               {{"addr", listener.address},
                {"state", "conn_listening"},
                {"secs_since_last_cmd", seconds_between(source_.start_ns, now_ns)}});
  }
  static void add_rows(std::string& text, const ConnectionRecord& record, uint64_t now_ns) {
    add_values(
        text, record.fd,
        {{"addr", peer_text(record)},
         {"listen_addr", local_address_text(record.fd)},
         {"state", kStateNames[static_cast<size_t>(record.state.load(std::memory_order_relaxed))]},
         {"secs_since_last_cmd", seconds_between(record.last_active_ns.load(std::memory_order_relaxed), now_ns)}});
  }

  const ProxyState& source_;
  int last_ = -1;  // the highest descriptor that has been told of
};

sockaddr_in6 peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  sockaddr_in6 peer{};
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return peer;
  peer.sin6_family = address.ss_family;
  if (address.ss_family == AF_INET || address.ss_family == AF_INET6) std::memcpy(&peer, &address, sizeof peer);
  return peer;
}

template <typename AskSystem>
std::string text_of_end(int fd, const AskSystem& ask) {
  sockaddr_storage address{};  // zeroed: a Unix socket's path ends there
  socklen_t length = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  return ask(fd, at, &length) == 0 ? address_text(*at) : std::string();
}

}  // namespace

ConnectionRecord::ConnectionRecord(int descriptor, uint64_t active_ns)
    : fd(descriptor), peer(peer_of(descriptor)), last_active_ns(active_ns) {}

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

std::string peer_text(const ConnectionRecord& record) {
  if (record.peer.sin6_family == AF_UNSPEC) return {};  // it was gone before it was served
  if (record.peer.sin6_family == AF_UNIX) return peer_address_text(record.fd);
  return address_text(reinterpret_cast<const sockaddr&>(record.peer));
}

std::unique_ptr<PagedReport> connections_report(const ProxyState& source) {
  return std::make_unique<ConnectionsReport>(source);
}

}  // namespace egret::proxy
