// Any bytes as a text client's stream, classic and meta commands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/text/text_parser.h"
#include "parser_fuzz.h"

namespace {

using egret::memcache::EventLog;
using egret::memcache::TextParser;

bool has_long_line(std::string_view stream) {
  for (size_t start = 0; start < stream.size();) {
    const size_t end = std::min(stream.find('\n', start), stream.size());
    if (end - start > TextParser::kMaxLine) return true;
    start = end + 1;
  }
  return false;
}

// Lines longer than kMaxLine may end the connection or not, by the way they arrive; up to there nothing may differ.
void check_same(const EventLog& a, const EventLog& b, std::string_view stream) {
  if (a.events() == b.events()) return;
  const EventLog& closed = a.closed() && a.events().size() <= b.events().size() ? a : b;
  const EventLog& other = &closed == &a ? b : a;
  EGRET_CHECK(closed.closed() && has_long_line(stream));
  const size_t common = closed.events().size() - 1;
  EGRET_CHECK(common <= other.events().size());
  EGRET_CHECK(std::equal(closed.events().begin(), closed.events().end() - 1, other.events().begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {  // NOLINT(readability-identifier-naming)
  return egret::memcache::fuzz_parser<TextParser>(data, size, check_same);
}
