#include "memcache/number.h"

#include <cstddef>
#include <limits>

namespace egret::memcache {
namespace {

constexpr size_t kMaxDigits32 = 11;
constexpr size_t kMaxDigits64 = 22;

// Words contain neither spaces nor newlines; these four are the rest of isspace() in the C locale.
bool is_white(char c) {
  return c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

unsigned digit_of(char c) {
  return static_cast<unsigned>(static_cast<unsigned char>(c)) - '0';
}

// The usual case, quickly: a few digits and nothing else.
bool parse_short(std::string_view word, uint64_t& out) {
  if (word.empty() || word.size() > 18) return false;
  uint64_t value = 0;
  for (const char c : word) {
    const unsigned digit = digit_of(c);
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  out = value;
  return true;
}

bool add_digit(uint64_t& number, unsigned digit) {
  return !__builtin_mul_overflow(number, uint64_t{10}, &number) &&
         !__builtin_add_overflow(number, uint64_t{digit}, &number);
}

// A number as C reads it.
struct CNumber {
  bool ok = false;
  bool negative = false;
  uint64_t magnitude = 0;
};

// [white]* [+-]? digits (end | white anything | NUL anything)
CNumber parse_c(std::string_view word) {
  CNumber result;
  size_t i = 0;
  while (i < word.size() && is_white(word[i])) ++i;
  if (i < word.size() && (word[i] == '-' || word[i] == '+')) result.negative = word[i++] == '-';
  const size_t first = i;
  for (; i < word.size() && digit_of(word[i]) <= 9; ++i) {
    if (!add_digit(result.magnitude, digit_of(word[i]))) return CNumber{};
  }
  result.ok = i > first && (i == word.size() || is_white(word[i]) || word[i] == '\0');
  return result;
}

}  // namespace

bool parse_u64(std::string_view word, uint64_t& out) {
  if (parse_short(word, out)) return true;
  if (word.empty() || word.size() > kMaxDigits64) return false;
  uint64_t value = 0;
  for (const char c : word) {
    if (digit_of(c) > 9 || !add_digit(value, digit_of(c))) return false;
  }
  out = value;
  return true;
}

bool parse_u32(std::string_view word, uint32_t& out) {
  uint64_t value = 0;
  if (word.size() > kMaxDigits32 || !parse_u64(word, value)) return false;
  if (value > std::numeric_limits<uint32_t>::max()) return false;
  out = static_cast<uint32_t>(value);
  return true;
}

bool parse_i32(std::string_view word, int32_t& out) {
  if (word.size() > kMaxDigits32) return false;
  if (word == "-") {
    out = 0;
    return true;
  }
  const bool negative = word.starts_with('-');
  uint64_t magnitude = 0;
  if (!parse_u64(word.substr(negative ? 1 : 0), magnitude)) return false;
  const auto limit = static_cast<uint64_t>(std::numeric_limits<int32_t>::max()) + (negative ? 1 : 0);
  if (magnitude > limit) return false;
  const auto value = static_cast<int64_t>(magnitude);
  out = static_cast<int32_t>(negative ? -value : value);
  return true;
}

bool parse_c_u32(std::string_view word, uint32_t& out) {
  uint64_t value = 0;
  if (!parse_short(word, value)) {
    const CNumber number = parse_c(word);
    if (!number.ok) return false;
    value = number.negative ? uint64_t{0} - number.magnitude : number.magnitude;
    // As memcached: a minus sign matters only if the result is huge.
    const bool is_huge = value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (is_huge && number.negative) return false;
  }
  out = static_cast<uint32_t>(value);
  return true;
}

bool parse_c_i32(std::string_view word, int32_t& out) {
  uint64_t value = 0;
  if (!parse_short(word, value)) {
    const CNumber number = parse_c(word);
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (number.negative ? 1 : 0);
    if (!number.ok || number.magnitude > limit) return false;
    value = number.negative ? uint64_t{0} - number.magnitude : number.magnitude;
  }
  out = static_cast<int32_t>(static_cast<uint32_t>(value));
  return true;
}

}  // namespace egret::memcache
