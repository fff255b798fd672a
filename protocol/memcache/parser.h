// The interface of every dialect's parser, and the meaning of its events.
//
//   caller's buffer --> next(input, command) --> one event, and how many bytes of the input it used up
//
// The caller owns the buffer. It calls next() with all bytes it holds, acts on the event, drops `consumed` bytes from
// the front, and calls again with the rest plus what has arrived since, until the event is kNeedMore. It may stop
// between any two events for as long as it likes (back-pressure) and go on later: no work is done twice. The parser
// holds a few words of state, keeps no bytes, does no I/O and never allocates. One parser serves one connection, on one
// thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/command.h"

namespace egret::memcache {

enum class Event : uint8_t {
  // The input has no further event; `consumed` may be more than 0 (bytes that need no answer).
  kNeedMore,
  // A complete command other than a retrieval. A storage command has its whole `value`, whose terminator was right.
  kCommand,
  // One key of a retrieval: kind, key, for gat and gats exptime. One event a key, in the order given.
  kKey,
  // After the retrieval's last key (END goes here); sets kind. There may have been no key: memcached accepts "gat 0".
  kEndOfKeys,
  // A storage command whose value_length is above Limits::inline_value: everything but the value. Its bytes follow...
  kValueBegin,
  // ...in pieces as they arrive: `value`, never empty...
  kValuePart,
  // ...and end here: terminator_ok says whether the value may be used.
  kValueEnd,
  // Send the line `error` in its turn. The command is over; the next byte begins a command. If the error is among the
  // keys of a retrieval line longer than Limits::retrieval_line, it comes after kKey events and replaces kEndOfKeys.
  kError,
  // Send `error`, if there is one, in its turn, and close. All later events are kClose.
  kClose,
};

struct Step {
  Event event;
  size_t consumed;  // bytes to drop from the front of the input; the command's views may point into them
  // Of these, those before the event's own: the rest of a value that nobody wants, lines that have no answer. So a command that
  // comes whole is what lies between the two.
  size_t skipped = 0;
};

// How many bytes of a command must be in the input at once.
struct Limits {
  size_t inline_value = 4096;  // values up to this length come whole with kCommand, longer ones are streamed
  // Lines up to this length are checked whole, retrievals before their first kKey. As much as memcached reads at once.
  size_t retrieval_line = 16384;
};

template <typename P>
concept DialectParser = requires(P parser, std::string_view input, Command& out, const Limits& limits) {
  P(limits);
  // The size that the caller's buffer must have: with so many bytes of input, next() can always make progress.
  { P::min_buffer(limits) } -> std::convertible_to<size_t>;
  { parser.next(input, out) } -> std::same_as<Step>;
  // Between kValueBegin and kValueEnd: drops the rest of the value and its terminator; neither kValuePart nor kValueEnd
  // follows. For values that the caller has answered already, or cannot take.
  parser.swallow_value();
  // Likewise, before kValueEnd: so many of its bytes have been taken from elsewhere than the buffer, and will not be in
  // the input. Not more than the value has left.
  parser.skip_part(size_t{});
};

// Names for logs and for failed tests.
const char* to_string(Event event);

}  // namespace egret::memcache
