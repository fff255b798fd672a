// Numbers as memcached reads them. Each function returns false, and leaves `out` unchanged, if the word is not such a
// number.
//
// Nearly everywhere memcached accepts digits only and refuses numbers that do not fit. It reads the flags and the
// exptime of a storage command by C's strtoul and strtol.
#pragma once

#include <cstdint>
#include <string_view>

namespace egret::memcache {

// Digits, at most 22 (of 32 bits: 11), leading zeros included.
bool parse_u64(std::string_view word, uint64_t& out);
bool parse_u32(std::string_view word, uint32_t& out);
// The same with an optional minus sign. A minus sign alone is 0.
bool parse_i32(std::string_view word, int32_t& out);

// Parse as memcached does, by C's strtoul and strtol: leading white space and a sign are allowed, and of a 64-bit number
// the low 32 bits are taken, so 4294967297 becomes 1. An unsigned number may be negative if its negation is below 2^63.
bool parse_c_u32(std::string_view word, uint32_t& out);
bool parse_c_i32(std::string_view word, int32_t& out);

}  // namespace egret::memcache
