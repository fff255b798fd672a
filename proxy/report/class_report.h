// The text of `stats items`, `stats slabs` and `stats sizes`: the store's size classes, merged over all backends, with
// memcached's names and format, for memcached-tool and exporters. Rows about slabs that have no counterpart in a log
// are 0.
//
//   pool::FanOut (group kSizeClasses) ─ class_stats() ─▶ one of these ─▶ text
//
// Pure functions; any thread. Classes are numbered from 1, as in memcached, and are the same in all three reports.
#pragma once

#include <string>

#include "pool/fan_out.h"

namespace egret::proxy {

// Each ends with END.
// Classes with items, or with a counter that is not 0.
std::string items_report(const pool::ClassStats& classes);
// Classes with items, as if the items of each class lay in pages of its own.
std::string slabs_report(const pool::ClassStats& classes);
// The largest size of each class with items, and the number of its items.
std::string sizes_report(const pool::ClassStats& classes);

}  // namespace egret::proxy
