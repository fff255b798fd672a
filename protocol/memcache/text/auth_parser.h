// Parses the input of a text client that has not authenticated: memcached's ASCII authentication (protocol.txt,
// "Authentication"), a `set` of any key whose value is "user password". Any other command gets an error.
//
// A value of up to kMaxCredentials bytes must arrive whole. A longer one is read and dropped, and counts as wrong
// credentials. Above kMaxToken the line is refused at once, and the following bytes are parsed as lines.
#pragma once

#include <cstddef>
#include <string_view>

#include "memcache/command.h"
#include "memcache/parser.h"

namespace egret::memcache {

class AuthParser {
 public:
  explicit AuthParser(const Limits&) {}

  static constexpr size_t kMinLine = 6;            // bytes before the newline; a shorter line ends the connection
  static constexpr size_t kMaxLine = 2048;         // bytes without a newline that memcached accepts
  static constexpr size_t kMaxCredentials = 1024;  // bytes of user and password
  static constexpr size_t kMaxToken = 16384;       // bytes of a value that memcached waits for
  static size_t min_buffer(const Limits&) { return kMaxLine + 1 + kMaxCredentials + 2; }

  // Events: kCommand (kAuthenticate; without a user if the value was too long), kError, kClose, kNeedMore.
  Step next(std::string_view input, Command& out) noexcept;
  void swallow_value() {}
  void skip_part(size_t /*bytes*/) {}
  // Whether the next byte begins a line.
  bool is_between_commands() const { return left_ == 0; }

 private:
  Step line(std::string_view input, Command& out);
  Step token(std::string_view input, size_t line, size_t length, Command& out);
  Step passing_token(std::string_view input, Command& out);

  // State of a value that is dropped.
  size_t left_ = 0;  // bytes still to come, terminator included
  bool has_space_ = false;
  char last_[2] = {};
};

static_assert(DialectParser<AuthParser>);

}  // namespace egret::memcache
