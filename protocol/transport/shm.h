// The same-host transport: a queue pair's shared-memory twin.
//
// A Unix socket (SOCK_SEQPACKET) carries the frames; the server's frame that opens the region carries these descriptors:
//   request memory    memfd, sealed against shrinking and growing; the client maps it writable, the server read-only
//   response memory   memfd, sealed likewise and against new writable mappings (F_SEAL_FUTURE_WRITE): the client reads
//   to-server wake-up the client's rings
//   to-client wake-up the server's deliveries; both: shm_wakeup.h
//   where each lane has a to-server wake-up: those of lanes 1, 2 and so on (the one above is lane 0's)
// Behind request memory lie the ring counters (shm_common.h). Only the client writes them. The server remembers the
// last value of each: another one is a ring. So none is lost, and the client never waits for one to be cleared.
//
// Writes are stores, reads are loads of the slot itself (nothing is copied), flush() is one full fence. The peer's end
// of the socket tells of its death, however it died. Each side checks the other's credentials (SO_PEERCRED) before
// anything else. What a peer sends by way of descriptors is checked for what it is: README.md.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "transport/address.h"
#include "transport/transport.h"

namespace egret::transport {

// `path`: a file system path, or "@name" for an abstract socket.
base::Expected<std::unique_ptr<Listener>> shm_listen(const std::string& path, const ListenOptions& options);
base::Expected<std::unique_ptr<ClientEndpoint>> shm_connect(const std::string& path, const ConnectOptions& options);

// The mode of a socket file: no wider than who may connect. Credentials are checked beyond that.
mode_t shm_socket_mode(const ListenOptions& options);

}  // namespace egret::transport
