// Single blocking exchanges in memcached's text protocol, for everything around a run: is it up, what does it count.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "bench/address.h"

namespace egret::bench {

// Sends `request` (with its CRLF) over a new connection and reads until the answer ends with `terminator` or is an
// error line, for at most `timeout_s`.
base::Expected<std::string> exchange(const Address& address, const std::string& request, const std::string& terminator,
                                     double timeout_s);

// Asks once whether a get is answered with a miss or a hit, which a proxy that cannot reach its backend does not do.
base::Status check_serving(const Address& address);

// One number of `stats`, 0 if it is not there.
uint64_t read_stat(const Address& address, const std::string& name);

}  // namespace egret::bench
