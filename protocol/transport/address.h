// "shm:/run/egret/backend.sock" → the transport that serves it. The one place that knows which transports exist.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "transport/transport.h"

namespace egret::transport {

struct ListenOptions {
  // Peers on the same host (shm) must run as this daemon's user, as root, as one of these users, or be in one of these
  // groups.
  std::vector<uint32_t> allowed_uids;
  std::vector<uint32_t> allowed_gids{};
};

struct ConnectOptions {
  uint32_t queue_pairs = 1;  // where the transport has such; lanes are dealt over them
  // Whoever listens on the same host (shm) must run as our user, as root, or as one of these.
  std::vector<uint32_t> backend_uids;
};

// Checks the form of an address; the error says what forms there are.
base::Status check_address(const std::string& address);

base::Expected<std::unique_ptr<Listener>> listen(const std::string& address, const ListenOptions& options);

// Starts to connect; what comes of it shows at control_fd().
base::Expected<std::unique_ptr<ClientEndpoint>> connect(const std::string& address, const ConnectOptions& options = {});

}  // namespace egret::transport
