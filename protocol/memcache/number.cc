#include "memcache/number.h"

#include <cstddef>
#include <limits>

namespace egret::memcache {
namespace {

// Words hold neither spaces nor newlines; these four are what is left of isspace() in the C locale.
bool is_white(char c) {
  return c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

struct Parsed {
  bool ok = false;
  bool negative = false;
  uint64_t magnitude = 0;
};

// [white]* [+-]? digits (end | white anything)
Parsed parse(std::string_view word) {
  Parsed result;
  size_t i = 0;
  while (i < word.size() && is_white(word[i])) ++i;
  if (i < word.size() && (word[i] == '-' || word[i] == '+')) result.negative = word[i++] == '-';
  const size_t first = i;
  for (; i < word.size(); ++i) {
    const unsigned digit = static_cast<unsigned>(static_cast<unsigned char>(word[i])) - '0';
    if (digit > 9) break;
    if (__builtin_mul_overflow(result.magnitude, uint64_t{10}, &result.magnitude) ||
        __builtin_add_overflow(result.magnitude, uint64_t{digit}, &result.magnitude)) {
      return Parsed{};
    }
  }
  result.ok = i > first && (i == word.size() || is_white(word[i]));
  return result;
}

// What nearly all words are: a few digits and nothing else, which no rule above makes special.
bool parse_short(std::string_view word, uint64_t& out) {
  if (word.empty() || word.size() > 18) return false;
  uint64_t value = 0;
  for (const char c : word) {
    const unsigned digit = static_cast<unsigned>(static_cast<unsigned char>(c)) - '0';
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  out = value;
  return true;
}

}  // namespace

bool parse_u64(std::string_view word, uint64_t& out) {
  if (parse_short(word, out)) return true;
  const Parsed parsed = parse(word);
  if (!parsed.ok) return false;
  const uint64_t value = parsed.negative ? uint64_t{0} - parsed.magnitude : parsed.magnitude;
  // memcached looks for a minus sign anywhere in the word, and only when the number came out as a huge one.
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) && word.find('-') != word.npos) return false;
  out = value;
  return true;
}

bool parse_u32(std::string_view word, uint32_t& out) {
  uint64_t value = 0;
  if (!parse_u64(word, value)) return false;
  out = static_cast<uint32_t>(value);
  return true;
}

bool parse_i32(std::string_view word, int32_t& out) {
  uint64_t value = 0;
  if (!parse_short(word, value)) {
    const Parsed parsed = parse(word);
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (parsed.negative ? 1 : 0);
    if (!parsed.ok || parsed.magnitude > limit) return false;
    value = parsed.negative ? uint64_t{0} - parsed.magnitude : parsed.magnitude;
  }
  out = static_cast<int32_t>(static_cast<uint32_t>(value));
  return true;
}

}  // namespace egret::memcache
