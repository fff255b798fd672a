// Listens by RDMA and by TCP at one address and port (rdma+tcp:HOST:PORT).
//
//   TCP    must be possible at the start
//   RDMA   cannot be had (no device, or it is gone) ─▶ tried again by itself, every kListenRetryMs at last ─▶ listens
//
// A half that cannot go on pauses by itself; the other one accepts. accept() tells of each trouble once, and when it is
// over. Thread: the control thread's.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transport/address.h"
#include "transport/transport.h"

namespace egret::transport {

inline constexpr int kListenRetryMs = 1000;

// How a half begins to listen: transport::listen(), or a test's.
using ListenAt = base::Expected<std::unique_ptr<Listener>> (*)(const std::string& address,
                                                               const ListenOptions& options);

base::Expected<std::unique_ptr<Listener>> listen_at_both(const std::string& rdma, const std::string& tcp,
                                                         const ListenOptions& options, ListenAt listen_at);

}  // namespace egret::transport
