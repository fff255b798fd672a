// The answer to `config get cluster`, by which clients with auto discovery (node-memcached, xmemcached, emcache, …) learn
// whom to connect to: a version and a list, in the form of Amazon ElastiCache's configuration endpoint. Cold path.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace egret::proxy {

// Checks the option `cluster`: each HOST:PORT, or HOST|IP|PORT.
base::Status check_cluster(std::span<const std::string> proxies);

// "CONFIG cluster 0 LENGTH", the version, "HOST|IP|PORT HOST|IP|PORT", END. IP is empty if HOST is a name and no address
// was given with it. `proxies`: check_cluster() has accepted them.
std::string cluster_text(uint64_t version, std::span<const std::string> proxies);

}  // namespace egret::proxy
