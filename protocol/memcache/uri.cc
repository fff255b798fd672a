#include "memcache/uri.h"

#include <algorithm>

namespace egret::memcache {

void append_uri_encoded(std::string& to, std::string_view key) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlainMarks = "-._~";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    if (is_letter || (byte >= '0' && byte <= '9') || kPlainMarks.find(c) != kPlainMarks.npos) {
      to += c;
    } else {
      to += '%';
      to += kDigits[byte >> 4];
      to += kDigits[byte & 15];
    }
  }
}

bool is_binary_key(std::string_view key) {
  return std::ranges::any_of(key, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
}

void append_shown(std::string& to, std::string_view text) {
  if (is_binary_key(text)) return append_uri_encoded(to, text);
  to.append(text);
}

}  // namespace egret::memcache
