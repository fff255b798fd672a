// Numbers as memcached reads them, which is as C's strtol family does: leading and trailing white space within the
// word, a sign, a value cut to 32 bits. Locale-free. Each returns false when the word is no such number, `out` being
// left alone.
#pragma once

#include <cstdint>
#include <string_view>

namespace egret::memcache {

// Any unsigned 64-bit number. A minus sign is taken if the negated number is below 2^63, as in "-0".
bool parse_u64(std::string_view word, uint64_t& out);

// As parse_u64, then the low 32 bits: 4294967297 is 1.
bool parse_u32(std::string_view word, uint32_t& out);

// Any signed 64-bit number, then the low 32 bits: 2147483648 is -2147483648.
bool parse_i32(std::string_view word, int32_t& out);

}  // namespace egret::memcache
