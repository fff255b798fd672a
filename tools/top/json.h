// The figures as JSON, for programs: one object, on one line, in ASCII. Cold path; any thread.
#pragma once

#include <span>
#include <string>

#include "top/daemon.h"

namespace egret::top {

// {"time": seconds since 1970, "daemons": [{"address", "up", "error" or figures, "backends" | "partitions", "lanes"}]}.
// A figure is a number, {"seconds", "beyond"} for a quantile, or null if it is not known. Bytes of names that are not
// UTF-8 become U+FFFD.
std::string to_json(std::span<const Daemon* const> daemons, double unix_time_s);

}  // namespace egret::top
