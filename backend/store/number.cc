#include "store/number.h"

#include <charconv>

namespace egret::store {

namespace {
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
}  // namespace

std::optional<uint64_t> parse_number(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_space(text[at])) ++at;
  const bool negative = at < text.size() && text[at] == '-';
  if (negative || (at < text.size() && text[at] == '+')) ++at;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc{}) return {};
  const auto rest = static_cast<size_t>(end - text.data());
  if (rest < text.size() && !is_space(text[rest]) && text[rest] != '\0') return {};
  if (negative) number = 0 - number;
  const bool is_huge = number >> 63 != 0;
  if (is_huge && text.substr(0, text.find('\0')).find('-') != std::string_view::npos) return {};
  return number;
}

std::string_view write_decimal(uint64_t number, char* to) {
  return {to, static_cast<size_t>(std::to_chars(to, to + kMaxDigits, number).ptr - to)};
}

}  // namespace egret::store
