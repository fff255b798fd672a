// Any bytes as a client's stream, read twice: once in one piece and once in pieces whose sizes come from the input too.
// Both readings must give views that lie in the input, in a bounded number of calls. That they must give the same
// events is checked by the fuzzer of each dialect, since a dialect may have its exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../unit/memcache_text_events.h"
#include "base/check.h"

namespace egret::memcache {

template <DialectParser Parser>
struct Reading {
  using Log = BasicEventLog<Parser>;

  Reading(Limits limits, bool swallow, std::string_view input) : log(limits, swallow), stream(input) {}

  void feed(std::string_view piece) {
    log.feed(piece);
    ++pieces;
  }
  void check() const {
    EGRET_CHECK(log.views_in_input());
    EGRET_CHECK(!log.stuck());
    // Each call uses up a byte, or is the last of its piece (or of a full buffer), or ends a value.
    EGRET_CHECK(log.events().size() <= 2 * stream.size());
    EGRET_CHECK(log.calls() <= 3 * stream.size() + pieces + 1);
  }

  Log log;
  std::string_view stream;
  size_t pieces = 0;
};

// The first three bytes of the input say how it is read: limits, sizes of the pieces.
template <DialectParser Parser, typename CheckSame>
int fuzz_parser(const uint8_t* data, size_t size, const CheckSame& check_same) {
  if (size < 3) return 0;
  const Limits limits{.inline_value = data[0] & 0x7fu, .retrieval_line = 0};
  const bool swallow = (data[0] & 0x80u) != 0;
  uint32_t random = data[1] * 256u + data[2] + 1u;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 3, size - 3);

  Reading<Parser> whole(limits, swallow, stream);
  whole.feed(stream);
  whole.check();

  Reading<Parser> cut(limits, swallow, stream);
  const uint32_t longest = data[1] < 128 ? 4 : 400;
  for (size_t at = 0; at < stream.size();) {
    random = random * 1664525u + 1013904223u;
    const size_t piece = 1 + (random >> 16) % longest;
    cut.feed(stream.substr(at, piece));
    at += piece;
  }
  cut.check();
  check_same(whole.log, cut.log, stream);
  return 0;
}

}  // namespace egret::memcache
