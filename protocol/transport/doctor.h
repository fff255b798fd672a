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
  bool is_configured = false;  // an rdma: address is; else all that is found is only information
  uint64_t sessions = 0;
  uint64_t session_bytes = 0;  // pinned by each, at most: its slots
  uint64_t slots_bytes = 0;    // pinned by all of them together, at most; 0: as much as all of their slots
  uint64_t queue_bytes = 0;    // and by its queues
  std::string
      arithmetic;         // of slots_bytes: "256 sessions (max_sessions) x 1MiB (session_memory)"; the queues are added
  bool connects = false;  // and so chooses the traffic class:
  std::optional<uint8_t> tos{};
};

// What the queues of one session pin, as a device of large entries needs it: sends of 320 bytes with their inline data,
// receives of 16, completions of 64, the buffers of frames; rounded up, as devices do.
constexpr uint64_t queue_bytes(uint64_t sends, uint64_t receives, uint64_t queue_pairs) {
  constexpr uint64_t kFrames = 12 << 10;
  constexpr uint64_t kUnit = 64 << 10;
  const uint64_t bytes = queue_pairs * (sends * 320 + receives * 16 + (sends + receives) * 64) + kFrames;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// Devices, cards, ports, GIDs, MTU and traffic class, device files, the library's driver, fork safety, the pin limit, huge pages.
void check_rdma(const HostFiles& host, const VerbsLibrary& library, const PinLimit& limit, const RdmaNeeds& needs,
                base::Findings& findings);
// The same of this host.
void check_rdma(const RdmaNeeds& needs, base::Findings& findings);

// Whether `address` can be listened on now. For rdma: and tcp: it is, for a moment.
void check_listen(const std::string& address, base::Findings& findings);

bool is_rdma(const std::string& address);
bool is_tcp(const std::string& address);

}  // namespace egret::transport
