// Parses the lines of the meta commands mg, ms, md, ma, me (protocol.txt, "Meta Commands").
//
// The flags become fields and option bits of the Command. The line stays in Command::echo, since the answer repeats its
// flags in their order.
#pragma once

#include <string_view>

#include "memcache/command.h"
#include "memcache/text/line.h"

namespace egret::memcache {

struct MetaLine {
  std::string_view error;         // empty: success
  bool has_value_length = false;  // ms: Command::value_length is valid, even if there was an error
};

// `line` begins with one of mg, ms, md, ma, me.
MetaLine parse_meta(const Line& line, Command& out);

inline constexpr size_t kMaxMetaWords = 20;   // words of a line that memcached accepts, command word included
inline constexpr size_t kMaxOpaqueWord = 32;  // bytes, the letter O included

}  // namespace egret::memcache
