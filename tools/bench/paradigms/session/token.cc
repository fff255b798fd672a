#include "bench_paradigms/session/token.h"

#include <array>
#include <cstddef>

#include "base/random.h"

namespace egret::bench_paradigms {

std::string make_token() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::byte, 16> bytes{};
  base::fill_random(bytes);
  std::string token;
  for (const std::byte byte : bytes) {
    token += kDigits[static_cast<size_t>(byte >> 4)];
    token += kDigits[static_cast<size_t>(byte & std::byte{15})];
  }
  return token;
}

bool is_same_token(std::string_view given, std::string_view own) {
  if (given.size() != own.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(own[i]);
  }
  return difference == 0;
}

}  // namespace egret::bench_paradigms
