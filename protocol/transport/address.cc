#include "transport/address.h"

#include <algorithm>
#include <array>

#include "transport/local/local.h"
#include "transport/shm.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs.h"

namespace egret::transport {

using base::Status;

namespace {

constexpr std::string_view kShm = "shm:";
constexpr std::string_view kRdma = "rdma:";
constexpr std::string_view kTcp = "tcp:";
constexpr std::string_view kBoth = "rdma+tcp:";
constexpr std::string_view kLocal = "local:";

Status unknown_form(const std::string& address) {
  return Status::error(
      "'" + address +
      "' is no address this build knows: expected rdma:HOST:PORT, tcp:HOST:PORT, rdma+tcp:HOST:PORT, shm:PATH or "
      "shm:@NAME");
}

}  // namespace

std::span<const std::string_view> transport_names() {
  static constexpr std::array<std::string_view, 4> kNames = {"shm", "rdma", "tcp", "local"};
  return kNames;
}

std::string_view transport_of(std::string_view address) {
  return address.substr(0, address.find(':'));
}

bool is_of_network(std::string_view address) {
  return address.starts_with(kRdma) || address.starts_with(kTcp) || address.starts_with(kBoth);
}

uint64_t number_of_transport(std::string_view address) {
  const auto names = transport_names();
  const auto at = std::ranges::find(names, transport_of(address));
  return at == names.end() ? 0 : static_cast<uint64_t>(at - names.begin()) + 1;
}

std::vector<std::string> alternatives_of(const std::string& address) {
  if (!address.starts_with(kBoth)) return {address};
  const std::string place = address.substr(kBoth.size());
  return {std::string(kRdma) + place, std::string(kTcp) + place};
}

Status check_address(const std::string& address) {
  if (address.starts_with(kBoth)) return check_tcp_address(address.substr(kBoth.size()), "rdma+tcp");
  if (address.starts_with(kRdma)) return check_verbs_address(address.substr(kRdma.size()));
  if (address.starts_with(kTcp)) return check_tcp_address(address.substr(kTcp.size()));
  for (const std::string_view named : {kShm, kLocal}) {
    if (address.starts_with(named) && address.size() > named.size()) return Status::ok();
  }
  return unknown_form(address);
}

base::Expected<std::unique_ptr<ClientEndpoint>> connect(const std::string& address, const ConnectOptions& options) {
  if (address.starts_with(kBoth)) {
    const auto each = alternatives_of(address);
    auto connected = connect(each[0], options);
    return connected ? std::move(connected) : connect(each[1], options);
  }
  if (address.starts_with(kRdma)) return verbs_connect(address.substr(kRdma.size()), options);
  if (address.starts_with(kTcp)) return tcp_connect(address.substr(kTcp.size()), options);
  if (address.starts_with(kLocal)) return local_connect(address.substr(kLocal.size()), options.home);
  if (!address.starts_with(kShm)) return unknown_form(address);
  return shm_connect(address.substr(kShm.size()), options);
}

}  // namespace egret::transport
