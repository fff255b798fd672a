#include "memcache/text/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace egret::memcache {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 64;
constexpr char kPad = '=';

constexpr std::array<uint8_t, 256> kValueOf = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNone);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

bool is_counted(char c) {
  return kValueOf[static_cast<unsigned char>(c)] != kNone || c == kPad;
}

}  // namespace

// What follows the first group with padding counts, but is not read.
size_t decode_base64(std::string_view text, char* out) {
  if (std::ranges::count_if(text, is_counted) % 4 != 0) return 0;
  char* const begin = out;
  uint32_t group = 0;
  int digits = 0;
  int pads = 0;
  for (const char c : text) {
    if (!is_counted(c)) continue;
    if (c == kPad) ++pads;
    group = group << 6 | (kValueOf[static_cast<unsigned char>(c)] & 63u);
    if (++digits < 4) continue;
    if (pads > 2) return 0;
    for (int byte = 0; byte < 3 - pads; ++byte) *out++ = static_cast<char>(group >> (16 - 8 * byte));
    if (pads > 0) break;
    digits = 0;
    group = 0;
  }
  return static_cast<size_t>(out - begin);
}

void append_base64(std::string& to, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(3, bytes.size()))) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
    for (size_t i = 0; i < 4; ++i) to += i <= bytes.size() ? kAlphabet[group >> (18 - 6 * i) & 63] : kPad;
  }
}

}  // namespace egret::memcache
