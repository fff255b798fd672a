// The meta commands (protocol.txt, "Meta Commands"): what a line of mg, ms, md, ma, me amounts to.
//
// The flags become fields and option bits of the Command; the line itself stays in Command::echo, since the answer
// gives its words back in the order in which they were asked for.
#pragma once

#include <string_view>

#include "memcache/command.h"
#include "memcache/line.h"

namespace egret::memcache {

struct MetaLine {
  std::string_view error;         // empty: `out` is filled in
  bool has_value_length = false;  // ms: Command::value_length is known, whether or not there was an error
};

// `line` begins with one of mg, ms, md, ma, me.
MetaLine parse_meta(const Line& line, Command& out);

inline constexpr size_t kMaxMetaWords = 20;   // of a line, command word included, that memcached puts up with
inline constexpr size_t kMaxOpaqueWord = 32;  // its O included

}  // namespace egret::memcache
