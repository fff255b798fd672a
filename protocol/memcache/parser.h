// What every dialect's parser looks like, and what its events mean.
//
//   caller's buffer --> next(input, command) --> one event, and how many bytes of the input it used up
//
// The caller owns the buffer. It calls next() with all bytes it holds, acts on the event, drops `consumed` bytes from
// the front, and calls again with the rest plus whatever has arrived since, until the event is kNeedMore. It may stop
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
  // Nothing more to be had from this input; `consumed` may be more than 0 (bytes that need no answer).
  kNeedMore,
  // A complete command other than a retrieval. A storage command has its whole `value`, whose terminator was right.
  kCommand,
  // One key of a retrieval: kind, key, for gat and gats exptime. One event a key, in the order given.
  kKey,
  // The retrieval's keys have all been given (END goes here); sets kind. No key need have come before: memcached takes
  // "gat 0".
  kEndOfKeys,
  // A storage command whose value_length is above Limits::inline_value: everything but the value. Its bytes follow...
  kValueBegin,
  // ...in pieces as they arrive: `value`, never empty...
  kValuePart,
  // ...and end here: terminator_ok says whether the value may be used.
  kValueEnd,
  // A line to send in its turn: `error`. The command is over and the stream in step. When the error is found among the
  // keys of a retrieval line longer than Limits::retrieval_line, it comes after kKey events and in the place of
  // kEndOfKeys.
  kError,
  // Send `error`, if there is one, in its turn, and close. Nothing but kClose comes after it.
  kClose,
};

struct Step {
  Event event;
  size_t consumed;  // bytes to drop from the front of the input; the command's views may point into them
};

// Bounds in bytes of what has to be in the input at once.
struct Limits {
  size_t inline_value = 4096;  // values up to this length come whole with kCommand, longer ones are streamed
  // Lines up to this length are judged whole, retrievals before their first kKey. As much as memcached reads at once.
  size_t retrieval_line = 16384;
};

template <typename P>
concept DialectParser = requires(P parser, std::string_view input, Command& out, const Limits& limits) {
  P(limits);
  // The size that the caller's buffer must have: with so many bytes in the input, next() never needs more to go on.
  { P::min_buffer(limits) } -> std::convertible_to<size_t>;
  { parser.next(input, out) } -> std::same_as<Step>;
  // After kValueBegin and before kValueEnd: what is left of the value and its terminator is dropped unseen, and neither
  // kValuePart nor kValueEnd comes any more. For values that the caller has answered already, or cannot take.
  parser.swallow_value();
};

// What a reader of logs and of failed tests wants to see.
const char* to_string(Event event);

}  // namespace egret::memcache
