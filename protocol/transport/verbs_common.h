// What both ends of the verbs transport share: handles that free themselves, memory to register, addresses, what
// travels in rdma_cm's private data and behind frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include "base/status.h"
#include "transport/device/slabs.h"

namespace egret::transport::verbs {

inline constexpr uint32_t kMaxQueuePairs = 16;  // of one session
inline constexpr uint32_t kMaxReadDepth = 32;   // READs under way on one queue pair, before the devices' own limits
inline constexpr size_t kMaxFrame = 512;        // of the layer above; wire::kMaxFrame
// Connections that may wait for accept(). More are dropped without a word, and the connection manager asks again after
// four seconds only; so as many as there may be hosts (the system may allow fewer: net.rdma_ucm.max_backlog).
inline constexpr int kBacklog = 1024;
inline constexpr int kResolveMilliseconds = 1000;

// An error of libibverbs or librdmacm, by errno, with what an operator can do about the common ones.
base::Status verbs_error(const std::string& what, int error_number);

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using EventChannel = std::unique_ptr<rdma_event_channel, Freed<rdma_destroy_event_channel>>;
using CmId = std::unique_ptr<rdma_cm_id, Freed<rdma_destroy_id>>;
struct ThreadDomainFreed {  // ibv_dealloc_td is an inline function
  void operator()(ibv_td* domain) const { ::ibv_dealloc_td(domain); }
};
using ThreadDomain = std::unique_ptr<ibv_td, ThreadDomainFreed>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Freed<ibv_dealloc_pd>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Freed<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Freed<ibv_destroy_cq>>;
using Registration = std::unique_ptr<ibv_mr, Freed<ibv_dereg_mr>>;

base::Status unblock(int fd);
// An event channel whose descriptor does not block.
base::Expected<EventChannel> make_event_channel();

// Zeroed memory that stays where it is, near the device (device/pages.h), registered in one protection domain.
// Deregistered, then unmapped, when its owner goes; by then no verb may use it.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // `access`: ibv_access_flags; never relaxed ordering.
  base::Status create(ibv_pd* domain, size_t bytes, int access);
  std::byte* data() const { return pages_.data(); }
  size_t size() const { return size_; }
  uint32_t local_key() const { return registration_->lkey; }
  uint32_t remote_key() const { return registration_->rkey; }

 private:
  device::Slabs::Part pages_;  // outlives the registration
  size_t size_ = 0;
  Registration registration_;
};

// Where verbs of the other side reach: what a frame's attachment says of one memory.
struct RemoteMemory {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t key = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(RemoteMemory) == 24);

// Behind a frame with attach: the server's, then the client's.
struct RegionKeys {
  RemoteMemory requests;
  RemoteMemory responses;
};
struct ReplyKeys {
  RemoteMemory replies;
};

// A frame as it is sent: this head, the frame, the attachment.
struct FrameHead {
  uint32_t frame_bytes = 0;
  uint32_t attachment_bytes = 0;
};
inline constexpr size_t kFrameBuffer = sizeof(FrameHead) + kMaxFrame + sizeof(RegionKeys);

// A flag of ConnectData: the client connects its further queue pairs only when an Invitation has come. A flag of
// AcceptData: so it shall be. Release 0.1.0 knows no flags: its client connects all of them before its first frame, by
// the token in AcceptData.
inline constexpr uint8_t kJoinsLate = 1;
// A flag of both: what is to wake the peer, this end marks as solicited, so the peer need not be woken by anything else.
inline constexpr uint8_t kSolicits = 2;
// Flags of ConnectData: the client knows RejectData; it has been asked to come back, and has.
inline constexpr uint8_t kComesBack = 4;
inline constexpr uint8_t kCameBack = 8;

// What a server that has agreed to kJoinsLate sends when the peer is known to be who it should be: behind a head, as the
// attachment of a frame of no bytes.
struct Invitation {
  uint64_t token = 0;        // for ConnectData
  uint32_t queue_pairs = 0;  // the session gets, the first one included: no more than were asked for
  uint32_t reserved = 0;
};
static_assert(sizeof(Invitation) == 16);

// Private data of rdma_connect, at most 56 bytes.
struct ConnectData {
  static constexpr uint32_t kMagic = 0x43544745;  // "EGTC"
  uint32_t magic = kMagic;
  uint8_t version = 1;
  uint8_t index = 0;        // of this queue pair in its session; 0 makes the session
  uint8_t queue_pairs = 1;  // the session is to have
  uint8_t flags = 0;
  uint64_t token = 0;  // index > 0: which session to join
  // Slots of a lane that the client will ask for, for the size of the receive queue; 0: not said, as by release 0.1.0,
  // whose data end before this.
  uint8_t window = 0;
  uint8_t reserved[7] = {};
};
inline constexpr size_t kLeastConnectData = 16;
static_assert(sizeof(ConnectData) == kLeastConnectData + 8);

// Private data of rdma_accept, at most 196 bytes.
struct AcceptData {
  static constexpr uint32_t kMagic = 0x41544745;  // "EGTA"
  uint32_t magic = kMagic;
  uint8_t version = 1;
  uint8_t read_depth = 0;  // READs the client may have under way on this queue pair
  uint8_t flags = 0;
  uint8_t reserved = 0;
  uint64_t token = 0;  // by which further queue pairs join at once; with kJoinsLate: 0
};
static_assert(sizeof(AcceptData) == 16);

// Private data of rdma_reject for a client with kComesBack, at most 148 bytes: there is no time to make a session now.
struct RejectData {
  static constexpr uint32_t kMagic = 0x52544745;  // "EGTR"
  uint32_t magic = kMagic;
  uint8_t version = 1;
  uint8_t reserved[3] = {};
  uint32_t come_back_ms = 0;
  uint32_t reserved2 = 0;
};
static_assert(sizeof(RejectData) == 16 && offsetof(RejectData, come_back_ms) == 8);

// "10.0.0.1:11311", "[fe80::1]:11311", "host:11311", "*:11311".
struct HostPort {
  std::string host;
  std::string port;
};
// `scheme`: of the address, for the message.
base::Expected<HostPort> parse_host_port(const std::string& text, const std::string& scheme = "rdma");

using AddressInfo = std::unique_ptr<addrinfo, Freed<::freeaddrinfo>>;
// kListen: an address or name of this host, or "*". kAddress: an address; an error at once if it is a name. kName:
// either; a name may take many seconds.
enum class Resolve : uint8_t { kListen, kAddress, kName };
base::Expected<AddressInfo> resolve(const HostPort& at, Resolve how);

// The other end of a connection: "10.0.0.1", and with its port.
std::string peer_host(const rdma_cm_id* id);
std::string peer_name(const rdma_cm_id* id);

// libibverbs must be told before the first registration if this kernel does not copy pinned pages at fork.
void make_fork_safe();

}  // namespace egret::transport::verbs
