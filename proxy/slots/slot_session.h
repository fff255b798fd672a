// A client's wish for a session with a member of the pool, on its way from the control thread to the worker that is to
// serve it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pool/membership.h"
#include "transport/transport.h"
#include "wire/handshake.h"

namespace egret::proxy {

struct NewSlotSession {
  uint64_t number = 0;  // of all sessions of slot clients of this process
  std::unique_ptr<transport::ServerEndpoint> endpoint;
  wire::Hello hello;
  pool::Membership::Entry member;
  wire::RegionLayout layout;  // what it is to be granted
  uint32_t user = 0;          // rpc::LaneBinding::user

  // Sessions of one client thread with one member: a new one takes the place of the older.
  uint64_t client() const { return hello.worker_id ^ hello.member; }
};

}  // namespace egret::proxy
