// The figures as JSON, for programs: one object, on one line. Cold path; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "top/daemon.h"

namespace egret::top {

// `text` as a JSON string, in quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// {"time": seconds since 1970, "daemons": [{"address", "up", "error" or figures, "backends" | "partitions", "lanes"}]}.
// A figure is a number, {"seconds", "beyond"} for a quantile, or null when it is not known.
std::string to_json(std::span<const Daemon* const> daemons, double unix_time_s);

}  // namespace egret::top
