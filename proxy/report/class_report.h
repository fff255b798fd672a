// The text of `stats items`, `stats slabs` and `stats sizes`: the store's size classes, from all backends together,
// under memcached's names and in its form, for memcached-tool and exporters. Where memcached says something of its
// slabs that a log has not, the row is there and says 0.
//
//   pool::FanOut (group kSizeClasses) ─ class_stats() ─▶ one of these ─▶ text
//
// Pure functions; any thread. A class is numbered from 1, as memcached's are, and is the same in all three.
#pragma once

#include <string>

#include "pool/fan_out.h"

namespace egret::proxy {

// Each ends with END.
// A class that holds items, or of which a counter is not 0.
std::string items_report(const pool::ClassStats& classes);
// A class that holds items; and as if each had pages of its own, as many as its items take up.
std::string slabs_report(const pool::ClassStats& classes);
// The largest size of each class that holds items, and how many.
std::string sizes_report(const pool::ClassStats& classes);

}  // namespace egret::proxy
