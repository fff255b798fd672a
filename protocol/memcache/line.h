// A command line that is wholly in the input, cut into its words. Shared by the parsers of the text dialects; it owns
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace egret::memcache {

struct Line {
  static constexpr size_t kMaxWords = 23;  // memcached sees no further words of a line (but for keys)

  struct Word {
    const char* data;
    size_t size;
    std::string_view view() const { return {data, size}; }
  };

  std::string_view input;  // all of it: the value of a storage command follows the line
  size_t length;           // of the text, line end excluded
  size_t total;            // line end included
  size_t count;            // words, of which the first is the command word
  Word words[kMaxWords];

  std::string_view word(size_t i) const { return words[i].view(); }
  std::string_view last() const { return words[count - 1].view(); }
  bool noreply() const { return count > 0 && last() == "noreply"; }
  // Whether nothing stands before the first word.
  bool begins_with_word() const { return count > 0 && words[0].data == input.data(); }
  // From word `i` to the end of the last one.
  std::string_view from_word(size_t i) const {
    const Word& end = words[count - 1];
    return {words[i].data, static_cast<size_t>(end.data + end.size - words[i].data)};
  }
};

// Up to eight characters as a number, so that command words can be compared and switched on in one go.
constexpr uint64_t pack(std::string_view word) {
  uint64_t packed = 0;
  for (size_t i = 0; i < word.size() && i < 8; ++i) {
    packed |= static_cast<uint64_t>(static_cast<unsigned char>(word[i])) << (8 * i);
  }
  return packed;
}

// Words are parted by spaces only; any other byte but the line's end is part of one.
constexpr bool ends_word(char c) {
  return c == ' ' || c == '\n';
}
const char* skip_spaces(const char* p, const char* end);
const char* find_word_end(const char* p, const char* end);

// Fills in count and words from input and length.
void cut_words(Line& line);

}  // namespace egret::memcache
