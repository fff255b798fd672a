// Numbers as memcached reads them. Each function returns false when the word is no such number, and then leaves `out`
// alone.
//
// Nearly everywhere memcached takes digits only and refuses what does not fit. The flags and the exptime of a storage
// command it reads by C's strtoul and strtol.
#pragma once

#include <cstdint>
#include <string_view>

namespace egret::memcache {

// Digits, at most 22 (of 32 bits: 11), leading zeros included.
bool parse_u64(std::string_view word, uint64_t& out);
bool parse_u32(std::string_view word, uint32_t& out);
// As before, with a minus sign if there is one. A lone minus sign is 0.
bool parse_i32(std::string_view word, int32_t& out);

// As C's strtoul and strtol: white space within the word, a sign, any 64-bit number, of which the low 32 bits are
// taken: 4294967297 is 1. A minus sign is taken of an unsigned number if the negated number is below 2^63.
bool parse_c_u32(std::string_view word, uint32_t& out);
bool parse_c_i32(std::string_view word, int32_t& out);

}  // namespace egret::memcache
