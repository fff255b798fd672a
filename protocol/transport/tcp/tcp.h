// The TCP transport: hosts without RDMA devices. One connection is a session: frames.h has what crosses it.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transport/address.h"
#include "transport/transport.h"

namespace egret::transport {

// `scheme`: what the error says that was expected before HOST:PORT.
base::Status check_tcp_address(const std::string& host_port, const std::string& scheme = "tcp");
base::Expected<std::unique_ptr<Listener>> tcp_listen(const std::string& host_port, const ListenOptions& options);
base::Expected<std::unique_ptr<ClientEndpoint>> tcp_connect(const std::string& host_port,
                                                            const ConnectOptions& options);

}  // namespace egret::transport
