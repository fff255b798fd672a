// Decimal numbers in values, read as memcached reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace egret::store {

inline constexpr size_t kMaxDigits = 20;

// Leading white space and a sign are allowed, and anything may follow after white space or a zero byte. A negative
// number counts as 2^64 less its amount, and is refused (as is any number of 2^63 or more, if there is a minus anywhere
// in the value's text) unless that is below 2^63.
std::optional<uint64_t> parse_number(std::string_view text);

// Writes the digits to `to` (kMaxDigits bytes) and returns them.
std::string_view write_decimal(uint64_t number, char* to);

}  // namespace egret::store
