#include "memcache/text/line.h"

#include <bit>
#include <cstring>

namespace egret::memcache {

namespace {

constexpr uint64_t eight_of(unsigned char byte) {
  return uint64_t{0x0101010101010101} * byte;
}

// The lowest bit that is set belongs to the first of eight bytes that is not above a space; 0: all are.
constexpr uint64_t low_bytes(uint64_t bytes) {
  return (bytes - eight_of(' ' + 1)) & ~bytes & eight_of(0x80);
}

}  // namespace

const char* skip_spaces(const char* p, const char* end) {
  while (p < end && *p == ' ') ++p;
  return p;
}

const char* find_word_end(const char* p, const char* end) {
  // No byte above a space ends a word.
  static_assert(std::endian::native == std::endian::little);
  for (; end - p >= 8; p += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, p, sizeof bytes);
    if (const uint64_t low = low_bytes(bytes); low != 0) {
      p += std::countr_zero(low) / 8;
      break;
    }
  }
  while (p < end && !ends_word(*p)) ++p;
  return p;
}

void cut_words(Line& line) {
  const char* p = line.input.data();
  const char* const end = p + line.length;
  line.count = 0;
  while (line.count < Line::kMaxWords) {
    p = skip_spaces(p, end);
    if (p == end) break;
    const char* const word_end = find_word_end(p, end);
    line.words[line.count++] = {p, static_cast<size_t>(word_end - p)};
    p = word_end;
  }
}

}  // namespace egret::memcache
