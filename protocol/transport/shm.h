// The same-host transport: a queue pair's shared-memory twin.
//
// A Unix socket (SOCK_SEQPACKET) carries the frames; the server's frame that opens the region carries four descriptors, or more:
//   request memory    memfd, sealed against shrinking and growing; the client maps it writable, the server read-only
//   response memory   memfd, sealed likewise and against new writable mappings (F_SEAL_FUTURE_WRITE): the client reads
//   to-server wake-up the client's rings
//   to-client wake-up the server's deliveries; both: shm_wakeup.h
//   further to-server wake-ups, where each lane has one: those of lanes 1, 2 and so on; the first is that of lane 0
// Behind request memory lie the ring counters: one word that counts all rings (its upper 16 bits: the CPU on which the
// client runs, plus one), then one per lane (where each lane has a ring: a cache line per lane, and no count of all). Only the
// client writes them; the server remembers what it saw last, so no ring is lost and none needs clearing.
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
