// What a client of this host may do by slots: by the proxy's configuration, and by who the kernel says that he is.
//
// Pure; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "proxy/config.h"
#include "rpc/relay/rules.h"
#include "transport/transport.h"

namespace egret::proxy {

// An error, for the client: why he gets nothing. Without users, a client may do what one by the socket may; with users he
// is the one of users_file that has his uid.
base::Expected<std::shared_ptr<const rpc::relay::Rules>> slot_rules(const Config& config,
                                                                    const transport::PeerUser& user);

// Whether there are rules that backends do not know, so that clients' ops must go by the proxy.
bool is_restricted(const Config& config);

}  // namespace egret::proxy
