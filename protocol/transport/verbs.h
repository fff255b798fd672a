// The transport between hosts: reliable-connected queue pairs, set up by rdma_cm. See README.md for the picture.
//
//   request memory    on the server, registered for remote writing alone; the client WRITEs from its request image
//   response memory   on the server, registered for remote reading alone; the client READs into its response image
//   reply memory      on the client, registered for remote writing: a reply slot for each response slot, where
//                     deliveries land
//
// Nothing else can be reached from the network. A session has a protection domain of its own on either side, so its
// keys open nothing of another session; items are never registered at all. Frames of the handshake travel by SEND into
// a few receive buffers, which no remote key opens.
//
// A session has one queue pair or several, that share the session's protection domain and completion queue. The client
// connects the first. The others join it when the server has invited them, with the invitation's token: 64 random bits,
// good only before a region exists and only from the same address. Lane i uses queue pair i mod their number.
//
// What a peer must not do ends its session: a ring for a lane that it does not have or before there is a session, a
// frame that nobody waits for, reply slots of another size than the region's.
//
// Threads: until the region's frame is sent, an endpoint belongs to its control thread alone. Then the completion queue
// and the queue pairs are the data thread's; the control thread keeps the rdma_cm events, which say when the peer is
// gone.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transport/address.h"
#include "transport/transport.h"

namespace egret::transport {

// Checks "HOST:PORT", IPv6 in brackets; does not look up names.
base::Status check_verbs_address(const std::string& host_port);

// `host_port` as above; "*" or "0.0.0.0" listens on every device.
base::Expected<std::unique_ptr<Listener>> verbs_listen(const std::string& host_port, const ListenOptions& options);
base::Expected<std::unique_ptr<PollGroup>> verbs_poll_group();
base::Expected<std::unique_ptr<ClientEndpoint>> verbs_connect(const std::string& host_port,
                                                              const ConnectOptions& options);

}  // namespace egret::transport
