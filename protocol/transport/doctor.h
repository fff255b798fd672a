// Start-up checks of what the transports need of this host: RDMA devices, their ports, addresses and device files, the
// limit of pinned memory, and whether listening at an address is possible. Cold path; any thread.
//
// The files that a check reads are parameters, so that tests can use other hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/service/doctor.h"

namespace egret::transport {

// The paths at which the kernel describes a host.
struct HostFiles {
  std::string sys = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

// The state of libibverbs.
struct VerbsLibrary {
  enum class Fork : uint8_t { kUnneeded, kEnabled, kDisabled };
  int devices = 0;  // that it has a driver for and may see
  Fork fork = Fork::kUnneeded;
};
VerbsLibrary ask_verbs_library();

// How much memory this process may pin.
struct PinLimit {
  static constexpr uint64_t kUnlimited = ~uint64_t{0};
  uint64_t bytes = kUnlimited;
  bool by_capability = false;  // CAP_IPC_LOCK: no limit holds
};
PinLimit pin_limit(const HostFiles& host);

// What the configuration needs of RDMA.
struct RdmaNeeds {
  bool is_configured = false;  // an rdma: or rdma+tcp: address is; else all that is found is only information
  bool has_fallback = false;   // all of them are rdma+tcp: what fails is a warning
  uint64_t sessions = 0;
  uint64_t session_bytes = 0;  // pinned by each, at most: its slots
  uint64_t slots_bytes = 0;    // pinned by all of them together, at most; 0: as much as all of their slots
  uint64_t queue_bytes = 0;    // and by its queues
  // Of slots_bytes: "256 sessions (max_sessions) x 1MiB (session_memory)"; the queues are added.
  std::string arithmetic;
  bool connects = false;  // and so chooses the traffic class:
  std::optional<uint8_t> tos{};
};

// Devices, cards, ports, GIDs, MTU and traffic class, device files, the library's driver, fork safety, the pin limit, huge pages.
void check_rdma(const HostFiles& host, const VerbsLibrary& library, const PinLimit& limit, const RdmaNeeds& needs,
                base::Findings& findings);
// The same of this host.
void check_rdma(const RdmaNeeds& needs, base::Findings& findings);

// What the queues of one session over rdma pin beside its slots, in bytes, at the end that connects and at the one that listens.
// For who reckons with it before there is a session. `window`: the client's.
uint64_t client_queue_bytes(uint32_t lanes, uint32_t queue_pairs, uint32_t window);
uint64_t server_queue_bytes(uint32_t lanes, uint32_t queue_pairs, uint32_t window);

// Whether `address` can be listened on now. For rdma: and tcp: it is, for a moment. Of rdma+tcp: each half; that RDMA
// cannot be had is a warning.
void check_listen(const std::string& address, base::Findings& findings);

// Whether an address may be reached by it: rdma+tcp: by either.
bool is_rdma(const std::string& address);
bool is_tcp(const std::string& address);
bool is_shm(const std::string& address);
bool has_fallback(const std::string& address);

}  // namespace egret::transport
