#include "transport/address.h"

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
constexpr std::string_view kLocal = "local:";

Status unknown_form(const std::string& address) {
  return Status::error(
      "'" + address +
      "' is no address this build knows: expected rdma:HOST:PORT, tcp:HOST:PORT, shm:PATH or shm:@NAME");
}

}  // namespace

std::span<const std::string_view> transport_names() {
  static constexpr std::array<std::string_view, 4> kNames = {"shm", "rdma", "tcp", "local"};
  return kNames;
}

std::string_view transport_of(std::string_view address) {
  return address.substr(0, address.find(':'));
}

Status check_address(const std::string& address) {
  if (address.starts_with(kRdma)) return check_verbs_address(address.substr(kRdma.size()));
  if (address.starts_with(kTcp)) return check_tcp_address(address.substr(kTcp.size()));
  for (const std::string_view named : {kShm, kLocal}) {
    if (address.starts_with(named) && address.size() > named.size()) return Status::ok();
  }
  return unknown_form(address);
}

base::Expected<std::unique_ptr<Listener>> listen(const std::string& address, const ListenOptions& options) {
  if (address.starts_with(kRdma)) return verbs_listen(address.substr(kRdma.size()), options);
  if (address.starts_with(kTcp)) return tcp_listen(address.substr(kTcp.size()), options);
  if (address.starts_with(kLocal)) return local_listen(address.substr(kLocal.size()));
  if (!address.starts_with(kShm)) return unknown_form(address);
  return shm_listen(address.substr(kShm.size()), options);
}

base::Expected<std::unique_ptr<ClientEndpoint>> connect(const std::string& address, const ConnectOptions& options) {
  if (address.starts_with(kRdma)) return verbs_connect(address.substr(kRdma.size()), options);
  if (address.starts_with(kTcp)) return tcp_connect(address.substr(kTcp.size()), options);
  if (address.starts_with(kLocal)) return local_connect(address.substr(kLocal.size()), options.home);
  if (!address.starts_with(kShm)) return unknown_form(address);
  return shm_connect(address.substr(kShm.size()), options);
}

}  // namespace egret::transport
