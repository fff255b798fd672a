// Keys as base64, as memcached reads them (meta commands with the flag b).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace egret::memcache {

// The most bytes that `length` characters can encode.
constexpr size_t max_decoded(size_t length) {
  return length / 4 * 3 + 3;
}

// Decodes `text` to `out` (max_decoded() bytes) and returns the length; 0: `text` is invalid or empty. As memcached,
// ignores characters outside of the alphabet; the others must be whole groups of four.
size_t decode_base64(std::string_view text, char* out);

// Appends `bytes` as base64, padded to whole groups.
void append_base64(std::string& to, std::string_view bytes);

}  // namespace egret::memcache
