// Keys as base64, the way memcached reads them (mg, ms and kin with the flag b).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace egret::memcache {

// Bytes that `length` characters may stand for, at most.
constexpr size_t max_decoded(size_t length) {
  return length / 4 * 3 + 3;
}

// Writes what `text` stands for to `out` (max_decoded() bytes) and returns how much it is; 0: it stands for nothing.
// Characters outside of the alphabet are passed over, as memcached does; what is left must be whole groups of four.
size_t decode_base64(std::string_view text, char* out);

// Appends what `bytes` are written as, padded to whole groups.
void append_base64(std::string& to, std::string_view bytes);

}  // namespace egret::memcache
