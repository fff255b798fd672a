#include "memcache/text/line.h"

namespace egret::memcache {

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
