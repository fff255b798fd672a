// "shm:/run/egret/backend.sock" → the transport that serves it. The one place that knows which transports exist.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "transport/transport.h"

namespace egret::transport {

// How connections between hosts use the fabric (rdma).
struct FabricOptions {
  uint8_t ack_timeout = 16;      // the device waits 4.096 us x 2^N for an acknowledgement
  std::optional<uint8_t> tos{};  // else what the host's rdma_cm gives (cma_roce_tos); the peer's end takes it over
  std::optional<uint8_t> gid_index{};  // else that of the address from which the route leads to the peer
  std::optional<uint16_t> pkey{};      // likewise
};

struct ListenOptions {
  // Peers on the same host (shm) must run as this daemon's user, as root, as one of these users, or be in one of these
  // groups.
  std::vector<uint32_t> allowed_uids;
  std::vector<uint32_t> allowed_gids{};
  FabricOptions fabric{};  // of the addresses named: their GIDs and partitions are those of the address
};

struct ConnectOptions {
  uint32_t queue_pairs = 1;  // where the transport has such; lanes are dealt over them
  // Whoever listens on the same host (shm) must run as our user, as root, or as one of these.
  std::vector<uint32_t> backend_uids;
  bool came_back = false;  // the backend has asked us to come back: see ClientEndpoint::come_back_ms()
  int home = -1;           // within one process (local): SameProcess::home()
  FabricOptions fabric{};
};

// The transports that there are: what addresses begin with, without the colon.
std::span<const std::string_view> transport_names();
// Of a well-formed address: one of these names.
std::string_view transport_of(std::string_view address);

// Checks the form of an address; the error says what forms there are.
base::Status check_address(const std::string& address);

base::Expected<std::unique_ptr<Listener>> listen(const std::string& address, const ListenOptions& options);

// Starts to connect; what comes of it shows at control_fd().
base::Expected<std::unique_ptr<ClientEndpoint>> connect(const std::string& address, const ConnectOptions& options = {});

}  // namespace egret::transport
