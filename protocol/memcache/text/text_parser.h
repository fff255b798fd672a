// The text protocol, classic and meta commands, as memcached 1.6 reads it. README.md lists the rules that surprise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/command.h"
#include "memcache/parser.h"

namespace egret::memcache {

struct Line;

class TextParser {
 public:
  explicit TextParser(const Limits& limits);

  static size_t min_buffer(const Limits& limits);

  // See parser.h. A line longer than kMaxLine that is not a retrieval ends the connection unless it arrives whole. This
  // is memcached's rule, and the only result that depends on how the bytes arrive.
  Step next(std::string_view input, Command& out) noexcept;

  void swallow_value();
  void skip_part(size_t bytes) { left_ -= bytes; }
  // Whether the next byte begins a command.
  bool is_between_commands() const { return state_ == State::kLine; }

  static constexpr size_t kMaxLine = 2048;      // bytes without a newline that memcached accepts
  static constexpr size_t kMaxKeyLength = 250;  // as op::kMaxKeyLength

 private:
  // Where the next byte of the input is.
  enum class State : uint8_t {
    kLine,     // at the beginning of a command line
    kExptime,  // in a retrieval line, somewhere before the end of the exptime of gat and gats
    kKeys,     // in a retrieval line, before a key or before its end
    kSkip,     // in a line that is answered already: drop everything up to the newline
    kValue,    // in a streamed value or before its terminator; left_ bytes of value are still to come
    kSwallow,  // in a value to drop; left_ bytes are still to come, terminator included
    kClosed,   // after the connection's last event
  };

  Step usual_get(std::string_view input, Command& out);
  [[gnu::noinline]] Step any(std::string_view input,
                             Command& out);  // its calls need registers that a usual get does not
  // One function per state. kNeedMore with something consumed means that next() continues at once with the rest.
  Step step(std::string_view input, Command& out);
  Step line(std::string_view input, Command& out);
  Step exptime(std::string_view input, Command& out);
  Step keys(std::string_view input, Command& out);
  Step skip(std::string_view input);
  Step value(std::string_view input, Command& out);
  Step swallow(std::string_view input);

  // Parts of line().
  Step unfinished_line(std::string_view input, Command& out);
  Step dispatch(Line& line, Command& out);
  Step retrieval(const Line& line, CommandKind kind, size_t word_end, Command& out);
  Step storage(const Line& line, CommandKind kind, Command& out);
  Step value_of(const Line& line, Command& out);
  Step stored_value(const Line& line, Command& out);
  Step arithmetic(const Line& line, CommandKind kind, Command& out);
  Step remove(const Line& line, Command& out);
  Step touch(const Line& line, Command& out);
  Step flush_all(const Line& line, Command& out);
  Step verbosity(const Line& line, Command& out);
  Step stats(const Line& line, Command& out);
  Step meta(const Line& line, Command& out);
  Step other(const Line& line, Command& out);
  Step admin(const Line& line, Command& out);

  // Of a retrieval.
  void begin_keys(CommandKind kind, Command& out);
  Step key_of(std::string_view key, size_t consumed, Command& out);

  // Ends of a command: the line and further bytes are consumed.
  Step done(Event event, size_t consumed);
  Step plain(const Line& line, CommandKind kind, Command& out);
  Step fail(std::string_view error, bool noreply, size_t consumed, Command& out);
  Step fail_with_value(std::string_view error, bool noreply, const Line& line, Command& out);
  Step close(size_t consumed, Command& out);
  Step end_of_keys(size_t consumed, Command& out);

  Limits limits_;
  State state_ = State::kLine;
  CommandKind kind_ = CommandKind::kGet;  // of the current retrieval
  bool seen_key_ = false;                 // the retrieval line has a key
  int32_t exptime_ = 0;                   // of the current gat
  size_t searched_ = 0;                   // bytes of the unfinished line that have no newline
  size_t needed_ = 0;                     // with less input than this there is no further event
  size_t left_ = 0;                       // see kValue, kSwallow
};

static_assert(DialectParser<TextParser>);

}  // namespace egret::memcache
