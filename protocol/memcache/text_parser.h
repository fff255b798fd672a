// The classic text protocol, as memcached 1.6.18 reads it: see README.md for the rules that surprise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/command.h"
#include "memcache/parser.h"

namespace egret::memcache {

class TextParser {
 public:
  explicit TextParser(const Limits& limits);

  static size_t min_buffer(const Limits& limits);

  // See parser.h. Lines that are no retrieval and longer than kMaxLine end the connection unless they arrive whole; this is
  // memcached's rule, and the only thing that depends on how the bytes were cut when they arrived.
  Step next(std::string_view input, Command& out) noexcept;

  void swallow_value();

  static constexpr size_t kMaxLine = 2048;      // bytes without a newline that memcached puts up with
  static constexpr size_t kMaxKeyLength = 250;  // as op::kMaxKeyLength

 private:
  // Where in the stream the next byte of the input lies.
  enum class State : uint8_t {
    kLine,     // at the first byte of a command line
    kExptime,  // in a retrieval line, before the exptime of gat and gats
    kKeys,     // in a retrieval line, before a key or its end
    kTail,     // in a retrieval line, after its keys, where only the newline matters; kEndOfKeys is still to come
    kSkip,     // in a line that has been answered; only the newline matters
    kValue,    // in a streamed value or its terminator
    kSwallow,  // in a value that nobody wants, or its terminator
    kClosed,
  };

  // next() in pieces. `pos` is where in the input they start; they return true when `step_` holds an event for the caller.
  const Limits limits_;
  State state_ = State::kLine;
};

static_assert(DialectParser<TextParser>);

}  // namespace egret::memcache
