// Where a proxy serves slots, by what the option `proxy` says: the twin of an address of memcached clients (wire/slot_twins.h), of
// localhost that of 127.0.0.1, then that of [::1]; of shm:… itself.
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
