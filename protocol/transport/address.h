// "shm:/run/egret/backend.sock" → the transport that serves it. The one place that knows which transports exist.
//
// "rdma+tcp:HOST:PORT" names two: a backend listens at both (the port spaces of rdma_cm and TCP do not meet), and a
// proxy's session goes by RDMA, or by TCP while RDMA cannot be had (rpc/resize/transport_choice.h).
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

namespace egret::tls {
class Mutual;
}

namespace egret::transport {

// Lanes of a session: as many as its backend has partitions, which only a grant says. Until then it is taken for this.
inline constexpr uint32_t kUsualLanes = 16;

// How connections between hosts use the fabric (rdma).
struct FabricOptions {
  uint8_t ack_timeout = 16;      // the device waits 4.096 us x 2^N for an acknowledgement
  std::optional<uint8_t> tos{};  // else what the host's rdma_cm gives (cma_roce_tos); the peer's end takes it over
  std::optional<uint8_t> gid_index{};  // else that of the address from which the route leads to the peer
  std::optional<uint16_t> pkey{};      // likewise
};

// Null: TCP without TLS.
struct TlsOffer {
  std::shared_ptr<const tls::Mutual> mutual{};
  bool is_required = true;  // peers without TLS are turned away
};

struct ListenOptions {
  // Peers on the same host (shm) must run as this daemon's user, as root, as one of these users, or be in one of these
  // groups.
  std::vector<uint32_t> allowed_uids;
  std::vector<uint32_t> allowed_gids{};
  std::string allowed_by = "allowed_uids and allowed_gids";  // the options that say so, for whoever is turned away
  FabricOptions fabric{};  // of the addresses named: their GIDs and partitions are those of the address
  // Those of the threads that are homes of sessions; they outlive the listener and its endpoints. None: an endpoint is
  // polled by itself.
  std::vector<PollGroup*> groups{};
  uint32_t lanes = kUsualLanes;  // that a session will have, for the size of what is made before it is granted
  TlsOffer tls{};                // to peers that come by TCP
};

struct ConnectOptions {
  uint32_t queue_pairs = 1;  // where the transport has such; lanes are dealt over them
  // Whoever listens on the same host (shm) must run as our user, as root, or as one of these.
  std::vector<uint32_t> backend_uids;
  // Of the session that it is for, so far as they are known; for the size of what is made before it is granted.
  uint32_t lanes = kUsualLanes;
  uint32_t window = 8;
  bool came_back = false;  // the backend has asked us to come back: see ClientEndpoint::come_back_ms()
  int home = -1;           // within one process (local): SameProcess::home()
  FabricOptions fabric{};
  PollGroup* group = nullptr;  // of the thread that will use the endpoint; outlives it. Null: it is polled by itself
  std::shared_ptr<const tls::Mutual> tls{};  // over TCP; null: none
};

// The transports that there are: what addresses begin with, without the colon.
std::span<const std::string_view> transport_names();
// Of a well-formed address: one of these names, or "rdma+tcp".
std::string_view transport_of(std::string_view address);
// Whether what follows the transport is HOST:PORT.
bool is_of_network(std::string_view address);
// 1 for the first of transport_names(), and so on; 0: none of them.
uint64_t number_of_transport(std::string_view address);
// The addresses of one transport each that this one stands for, the preferred one first: itself, or for rdma+tcp: two.
std::vector<std::string> alternatives_of(const std::string& address);

// Checks the form of an address; the error says what forms there are.
base::Status check_address(const std::string& address);

base::Expected<std::unique_ptr<Listener>> listen(const std::string& address, const ListenOptions& options);

// For one thread; it takes two descriptors, and of devices nothing before they are used.
base::Expected<std::unique_ptr<PollGroup>> make_poll_group();

// Starts to connect; what comes of it shows at control_fd(). Of several alternatives it is the first that can start.
base::Expected<std::unique_ptr<ClientEndpoint>> connect(const std::string& address, const ConnectOptions& options = {});

}  // namespace egret::transport
