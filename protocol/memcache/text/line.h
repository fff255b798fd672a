// A complete command line in the input, cut into words. The parsers of the text dialects share it; it owns nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace egret::memcache {

struct Line {
  static constexpr size_t kMaxWords = 23;  // as memcached, which ignores further words (except keys of a retrieval)

  struct Word {
    const char* data;
    size_t size;
    std::string_view view() const { return {data, size}; }
  };

  std::string_view input;  // the whole input: the value of a storage command follows the line
  size_t length;           // of the line without its end
  size_t total;            // of the line with its end
  size_t count;            // number of words; the first is the command word
  Word words[kMaxWords];

  std::string_view word(size_t i) const { return words[i].view(); }
  std::string_view last() const { return words[count - 1].view(); }
  bool noreply() const { return count > 0 && last() == "noreply"; }
  // Whether the line begins without spaces.
  bool begins_with_word() const { return count > 0 && words[0].data == input.data(); }
  // From word `i` to the end of the last one.
  std::string_view from_word(size_t i) const {
    const Word& end = words[count - 1];
    return {words[i].data, static_cast<size_t>(end.data + end.size - words[i].data)};
  }
};

// Up to eight characters as a number, so that a switch can compare command words.
constexpr uint64_t pack(std::string_view word) {
  uint64_t packed = 0;
  for (size_t i = 0; i < word.size() && i < 8; ++i) {
    packed |= static_cast<uint64_t>(static_cast<unsigned char>(word[i])) << (8 * i);
  }
  return packed;
}

// Only spaces separate words; any other byte except the line's end is part of a word.
constexpr bool ends_word(char c) {
  return c == ' ' || c == '\n';
}
inline const char* skip_spaces(const char* p, const char* end) {
  while (p < end && *p == ' ') ++p;
  return p;
}
// Inline: each key of each get comes here.
inline const char* find_word_end(const char* p, const char* end) {
  // No byte above a space ends a word. The lowest bit that is set in `low` belongs to the first byte that is not above one.
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kEach = 0x0101010101010101;
  for (; end - p >= 8; p += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, p, sizeof bytes);
    const uint64_t low = (bytes - kEach * (' ' + 1)) & ~bytes & (kEach * 0x80);
    if (low != 0) {
      p += std::countr_zero(low) / 8;
      break;
    }
  }
  while (p < end && !ends_word(*p)) ++p;
  return p;
}

// Fills in count and words from input and length.
void cut_words(Line& line);

}  // namespace egret::memcache
