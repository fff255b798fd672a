// What the texts of plans share: numbers, and "every N".
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace egret::interposer {

inline bool read_number(std::string_view text, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

inline bool read_every(std::string_view text, uint64_t& number) {
  constexpr std::string_view kEvery = "every ";
  return text.starts_with(kEvery) && read_number(text.substr(kEvery.size()), number) && number > 0;
}

}  // namespace egret::interposer
