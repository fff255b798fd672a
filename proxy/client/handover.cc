#include "proxy/client/handover.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log/log.h"
#include "base/service/notify.h"
#include "proxy/log_events.h"

namespace egret::proxy {

namespace {

constexpr std::string_view kPrefix = "client/";
constexpr std::string_view kLanguages = "utb";  // indexed by memcache::Language
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMostSeconds = UINT64_MAX / kSecondNs;
constexpr uint32_t kMostPlaces = 65536;
constexpr size_t kPerMessage = 200;  // descriptors; the kernel's limit is 253

// Whether the socket is a connection, even if the client has just disconnected.
bool is_connected(int fd) {
  int type = 0;
  int protocol = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return false;
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0) return false;
  sockaddr_storage peer{};
  length = sizeof peer;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
}

}  // namespace

std::string handover_name(const HandedClient& client) {
  std::string name(kPrefix);
  name += kLanguages[static_cast<size_t>(client.resume_state.language)];
  name += client.resume_state.has_authenticated ? 'y' : 'n';
  return name + "/" + std::to_string(client.last_active_ns / kSecondNs);
}

std::optional<HandedClient> parse_handover_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.size() < 4 || name[2] != '/') return std::nullopt;
  const size_t language = kLanguages.find(name[0]);
  if (language == kLanguages.npos || (name[1] != 'y' && name[1] != 'n')) return std::nullopt;
  uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), seconds);
  if (error != std::errc{} || end != name.data() + name.size() || seconds > kMostSeconds) return std::nullopt;
  HandedClient client;
  client.resume_state = {static_cast<memcache::Language>(language), name[1] == 'y'};
  client.last_active_ns = seconds * kSecondNs;
  return client;
}

std::vector<base::InheritedFd> part_clients(std::vector<base::InheritedFd>& inherited) {
  const auto first = std::stable_partition(inherited.begin(), inherited.end(), [](const base::InheritedFd& each) {
    return !each.name.starts_with(kPrefix);
  });
  std::vector<base::InheritedFd> clients(std::make_move_iterator(first), std::make_move_iterator(inherited.end()));
  inherited.erase(first, inherited.end());
  return clients;
}

std::vector<HandedClient> take_clients(std::vector<base::InheritedFd> descriptors) {
  std::set<std::string> names;
  for (const base::InheritedFd& each : descriptors) names.insert(each.name);
  bool is_told = true;
  for (const std::string& name : names) is_told &= base::notify_supervisor("FDSTOREREMOVE=1\nFDNAME=" + name);
  if (!names.empty() && (!is_told || !base::notify_barrier())) {
    // They may still be in the store: if we served them now, a later process could serve them a second time.
    base::log(kHandoverFailed, "the service manager does not answer: {} clients of the process before are closed",
              base::field("clients", descriptors.size()));
    return {};
  }
  std::vector<HandedClient> clients;
  for (base::InheritedFd& each : descriptors) {
    auto client = parse_handover_name(each.name);
    const int flags = ::fcntl(each.fd.get(), F_GETFL);
    if (!client || !is_connected(each.fd.get()) || ::fcntl(each.fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) continue;
    client->socket = std::move(each.fd);
    clients.push_back(std::move(*client));
  }
  return clients;
}

uint32_t places_in_store() {
  const char* const said = std::getenv("FDSTORE");
  if (said == nullptr || std::getenv("NOTIFY_SOCKET") == nullptr) return 0;
  const std::string_view text(said);
  uint32_t places = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), places);
  return error == std::errc{} && end == text.data() + text.size() ? std::min(places, kMostPlaces) : 0;
}

bool Handover::take_place() {
  uint32_t left = places_.load(std::memory_order_relaxed);
  while (left > 0 && !places_.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

void Handover::put(HandedClient client) {
  const std::lock_guard lock(mutex_);
  clients_.push_back(std::move(client));
}

size_t Handover::send() {
  const std::lock_guard lock(mutex_);
  if (clients_.empty()) return 0;
  std::map<std::string, std::vector<int>> by_name;
  for (const HandedClient& client : clients_) by_name[handover_name(client)].push_back(client.socket.get());
  bool is_told = true;
  for (const auto& [name, sockets] : by_name) {
    for (std::span<const int> rest(sockets); !rest.empty();) {
      const std::span<const int> some = rest.first(std::min(rest.size(), kPerMessage));
      is_told &= base::notify_supervisor("FDSTORE=1\nFDNAME=" + name, some);
      rest = rest.subspan(some.size());
    }
  }
  if (is_told && base::notify_barrier()) return clients_.size();
  base::log(kHandoverFailed, "the service manager does not answer: clients may be lost");
  return 0;
}

}  // namespace egret::proxy
