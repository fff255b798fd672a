// Any bytes as a text client's stream. They are read twice, once in one piece and once in pieces whose sizes come from
// the input too; both readings must give the same events, from views that lie in the input, in a bounded number of
// calls.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../unit/memcache_text_events.h"
#include "base/check.h"

namespace {

using egret::memcache::EventLog;
using egret::memcache::Limits;
using egret::memcache::TextParser;

struct Reading {
  EventLog log;
  size_t pieces = 0;
};

void check(const Reading& reading, std::string_view stream) {
  EGRET_CHECK(reading.log.views_in_input());
  EGRET_CHECK(!reading.log.stuck());
  EGRET_CHECK(reading.log.events().size() <= stream.size());
  // Each call uses up a byte, or is the last of its piece (or of a full buffer).
  EGRET_CHECK(reading.log.calls() <= 2 * stream.size() + reading.pieces + 1);
}

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
  if (size < 3) return 0;
  const Limits limits{.inline_value = data[0] & 0x7fu, .retrieval_line = 0};
  const bool swallow = (data[0] & 0x80u) != 0;
  uint32_t random = data[1] * 256u + data[2] + 1u;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 3, size - 3);

  Reading whole{EventLog(limits, swallow), 1};
  whole.log.feed(stream);
  check(whole, stream);

  Reading cut{EventLog(limits, swallow)};
  const uint32_t longest = data[1] < 128 ? 4 : 400;
  for (size_t at = 0; at < stream.size(); ++cut.pieces) {
    random = random * 1664525u + 1013904223u;
    const size_t piece = 1 + (random >> 16) % longest;
    cut.log.feed(stream.substr(at, piece));
    at += piece;
  }
  check(cut, stream);
  check_same(whole.log, cut.log, stream);
  return 0;
}
