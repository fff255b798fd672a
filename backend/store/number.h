// Decimal numbers in values, read as memcached reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace egret::store {

inline constexpr size_t kMaxDigits = 20;

// Leading white space and a sign are allowed; after white space or a zero byte anything may follow. A negative number
// -n reads as 2^64 - n. A number of 2^63 or more is refused if the text has a minus anywhere.
std::optional<uint64_t> parse_number(std::string_view text);

// Writes the digits to `to` (kMaxDigits bytes) and returns them.
std::string_view write_decimal(uint64_t number, char* to);

}  // namespace egret::store
