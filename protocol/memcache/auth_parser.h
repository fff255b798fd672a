// What a text client says before it has said who it is: memcached's ASCII authentication (protocol.txt,
// "Authentication"), a `set` of any key whose value is "user password". Everything else is told so.
//
// A value that may be right is waited for as a whole. One that is longer than any user and password passes through, and
// is judged by what it looked like; one that is longer still is refused at once, and what follows is lines again.
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
  static constexpr size_t kMaxLine = 2048;         // bytes without a newline that memcached puts up with
  static constexpr size_t kMaxCredentials = 1024;  // bytes of user and password
  static constexpr size_t kMaxToken = 16384;       // bytes of a value that memcached waits for
  static size_t min_buffer(const Limits&) { return kMaxLine + 1 + kMaxCredentials + 2; }

  // Events: kCommand (kAuthenticate; with no user, if the value was too long to be of one), kError, kClose, kNeedMore.
  Step next(std::string_view input, Command& out) noexcept;
  void swallow_value() {}
  // Whether the next byte is the first of a line.
  bool is_between_commands() const { return left_ == 0; }

 private:
  Step line(std::string_view input, Command& out);
  Step token(std::string_view input, size_t line, size_t length, Command& out);
  Step passing_token(std::string_view input, Command& out);

  // Of a value that passes through.
  size_t left_ = 0;  // bytes to come, terminator included
  bool has_space_ = false;
  char last_[2] = {};
};

static_assert(DialectParser<AuthParser>);

}  // namespace egret::memcache
