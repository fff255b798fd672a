// Unix sockets whose peer is not trusted, and the descriptors that it may send (SCM_RIGHTS): none reaches a thread that
// serves others. Where the kernel can, it refuses them (SO_PASSRIGHTS, Linux 6.16); elsewhere they are received and
// handed to the Closer.
//
//   listener, before listen() ── refuse_descriptors() ──▶ those accepted from it inherit that
//   a peer's socket ── receive_from_peer() ──▶ bytes, and descriptors apart
//                   └─ close_peer_socket() ──▶ closed here, or by the Closer if its queue may hold descriptors
//
// Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "base/unique_fd.h"

namespace egret::base {

// From now on whoever sends descriptors to this socket, or to one accepted from it, gets EPERM. False: this kernel
// cannot.
bool refuse_descriptors(int socket);
// Whether descriptors may have come, or may yet come, to this socket. False for sockets that are not Unix ones.
bool may_bring_descriptors(int socket);

struct FromPeer {
  ssize_t bytes = 0;    // as recvmsg() returns it; -1: see errno
  bool is_cut = false;  // the message was longer than the buffer, or more descriptors came than the kernel lets travel
};
// Receives without waiting. Descriptors are added to `descriptors`; the caller keeps those it wants, and gives all
// others to the Closer.
FromPeer receive_from_peer(int socket, std::span<const iovec> pieces, std::vector<UniqueFd>& descriptors);
FromPeer receive_from_peer(int socket, std::span<std::byte> buffer, std::vector<UniqueFd>& descriptors);

// The peer sees the end at once. Does nothing if it is closed already.
void close_peer_socket(UniqueFd socket);
// A listener: connections that nobody has accepted end with it.
void close_listener(UniqueFd listener);

void close_elsewhere(std::vector<UniqueFd>& descriptors);

}  // namespace egret::base
