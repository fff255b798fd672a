// A client's wish for a session with a member of the pool, on its way from the control thread to the worker that is to
// serve it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "pool/membership.h"
#include "transport/transport.h"
#include "wire/handshake.h"

namespace egret::proxy {

// The slot size that a client asks for, but at most ours; 0: it asks for none.
inline uint32_t slot_size_within(uint32_t ours, uint32_t wanted) {
  return wanted == 0 ? ours : std::clamp(wanted / 64 * 64, std::min(wire::kMinSlotSize, ours), ours);
}

struct NewSlotSession {
  static constexpr uint64_t kOfWorker = uint64_t{1} << 63;  // from there on: sessions of other workers (host_door.h)

  uint64_t number = 0;  // of all sessions that a worker serves
  std::unique_ptr<transport::ServerEndpoint> endpoint;
  wire::Hello hello;
  pool::Membership::Entry member;
  wire::RegionLayout layout{};  // what it is to be granted
  uint32_t user = 0;            // rpc::LaneBinding::user; 0: a worker of ours

  // Sessions of one client thread with one member: a new one takes the place of the older.
  bool is_of_worker() const { return number >= kOfWorker; }
  uint64_t client() const { return hello.worker_id ^ hello.member; }
};

}  // namespace egret::proxy
