#include "proxy/commands/cluster.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/text.h"
#include "discovery/name_entry.h"

namespace egret::proxy {

namespace {

struct Node {
  std::string host;
  std::string ip;  // empty: not known
  uint16_t port = 0;
};

bool is_ip(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_host(const std::string& host) {
  return is_ip(host) || discovery::is_host_name(host);
}

// Nothing: it is neither HOST:PORT nor HOST|IP|PORT.
std::optional<Node> parse_node(const std::string& text) {
  const std::vector<std::string> parts = base::split(text, '|');
  if (parts.size() == 3) {
    const auto at = base::parse_host_port("[" + parts[1] + "]:" + parts[2]);
    if (!at || at->port == 0 || !is_host(parts[0]) || !is_ip(parts[1])) return {};
    return Node{parts[0], parts[1], at->port};
  }
  const auto at = base::parse_host_port(text);
  if (parts.size() != 1 || !at || at->port == 0 || !is_host(at->host)) return {};
  return Node{at->host, is_ip(at->host) ? at->host : "", at->port};
}

}  // namespace

base::Status check_cluster(std::span<const std::string> proxies) {
  const auto bad = std::ranges::find_if(proxies, [](const std::string& text) { return !parse_node(text); });
  if (bad == proxies.end()) return base::Status::ok();
  return base::Status::error("expected HOST:PORT or HOST|IP|PORT, got " + base::quoted(*bad));
}

std::string cluster_text(uint64_t version, std::span<const std::string> proxies) {
  std::string list = fmt::format("{}\n", version);
  for (const std::string& text : proxies) {
    const Node node = parse_node(text).value();
    if (!list.ends_with('\n')) list += ' ';
    list += fmt::format("{}|{}|{}", node.host, node.ip, node.port);
  }
  list += '\n';
  return fmt::format("CONFIG cluster 0 {}\r\n{}\r\nEND\r\n", list.size(), list);
}

}  // namespace egret::proxy
