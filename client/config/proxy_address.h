// Where a proxy serves slots, by the address at which it serves memcached clients: the twins of proxy/slots/slot_addresses.h.
//
//   tcp:HOST:PORT   shm:@egret/tcp:HOST:PORT    an abstract socket; localhost is 127.0.0.1, then [::1]
//   unix:PATH       shm:PATH.slots
//   shm:…           itself
//
// Cold path; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace egret::client {

// In the order to try. An error: `address` has none of these forms; names of hosts are not looked up.
base::Expected<std::vector<std::string>> slot_addresses_of(const std::string& address);

}  // namespace egret::client
