#include "client/config/proxy_address.h"

#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/address.h"
#include "wire/slot_twins.h"

namespace egret::client {

using base::Expected;
using base::Status;

namespace {

using Addresses = std::vector<std::string>;

// As inet_ntop() writes it; empty: `host` is no address of that family.
std::string numeric(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_pton(family, host.c_str(), address.data()) != 1) return {};
  return ::inet_ntop(family, address.data(), text.data(), text.size()) != nullptr ? text.data() : "";
}

Expected<Addresses> twins_of_tcp(const std::string& place) {
  const size_t colon = place.rfind(':');
  std::string host = place.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : place.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) {
    return Status::error("tcp:" + place + ": expected tcp:HOST:PORT");
  }
  const auto twin = [&](const std::string& at) { return "shm:" + wire::twin_of_tcp(at, port); };
  if (host == "localhost") return Addresses{twin("127.0.0.1"), twin("[::1]")};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (const std::string v4 = numeric(AF_INET, host); !v4.empty()) return Addresses{twin(v4)};
  if (const std::string v6 = numeric(AF_INET6, host); !v6.empty()) return Addresses{twin("[" + v6 + "]")};
  return Status::error("tcp:" + place + ": expected an address of this host, 127.0.0.1 for one, or localhost");
}

}  // namespace

Expected<Addresses> slot_addresses_of(const std::string& address) {
  Expected<Addresses> found = Status::error("expected tcp:HOST:PORT, unix:PATH or shm:PATH, got \"" + address + "\"");
  if (address.starts_with("tcp:")) found = twins_of_tcp(address.substr(4));
  if (address.starts_with("unix:") && address.size() > 5)
    found = Addresses{"shm:" + wire::twin_of_unix(address.substr(5))};
  if (address.starts_with("shm:")) found = Addresses{address};
  if (!found) return found;
  for (const std::string& each : found.value()) {
    if (Status good = transport::check_address(each); !good) return good;
  }
  return found;
}

}  // namespace egret::client
