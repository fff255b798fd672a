// How many descriptors a proxy may have open at once, and what it does without when this host allows fewer.
#pragma once

#include <cstdint>
#include <string>

#include "proxy/config.h"

namespace egret::proxy {

// --doctor and the start use the same sum.
struct DescriptorNeed {
  uint64_t clients = 0;    // max_connections
  uint64_t sessions = 0;   // sessions of all workers with all backends
  uint64_t slots = 0;      // sessions of slot clients, who get what is left
  uint64_t others = 0;     // listeners, files, the admin address
  std::string arithmetic;  // "4096 clients (max_connections) + 16 x 4 workers x 3 backends + 256"

  uint64_t total() const { return clients + sessions + others; }
  // The number of client connections that fit under this limit of open files, at least 1.
  uint64_t connections_within(uint64_t limit) const;
};
DescriptorNeed descriptor_need(const Config& config);

// Raises the limit of open files to what max_connections and slots_sessions need. If that is not allowed, lowers slots_sessions
// to what fits besides, or max_connections, too, and logs the latter.
void fit_connections(Config& config);

}  // namespace egret::proxy
