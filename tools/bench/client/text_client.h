// Single blocking requests in memcached's text protocol, for checks before and after a run.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "bench/client/address.h"

namespace egret::bench {

// Sends `request` (with its CRLF) over a new connection and reads until the answer ends with `terminator` or is an
// error line, for at most `timeout_s`.
base::Expected<std::string> exchange(const Address& address, const std::string& request, const std::string& terminator,
                                     double timeout_s);

// Checks once that a get is answered by a miss or a hit. A proxy that cannot reach its backend answers otherwise.
base::Status check_serving(const Address& address);

// One number of `stats`; 0 if there is no such row.
uint64_t read_stat(const Address& address, const std::string& name);

}  // namespace egret::bench
