// What a text client says before it has said who it is: memcached's ASCII authentication (protocol.txt,
// "Authentication"), a `set` of any key whose value is "user password". Everything else is told so.
#pragma once

#include <cstddef>
#include <string_view>

#include "memcache/command.h"
#include "memcache/parser.h"

namespace egret::memcache {

class AuthParser {
 public:
  explicit AuthParser(const Limits&) {}

  static constexpr size_t kMaxLine = 2048;   // bytes without a newline that memcached puts up with
  static constexpr size_t kMaxToken = 1024;  // bytes of user and password; more is refused and dropped
  static size_t min_buffer(const Limits&) { return kMaxLine + 1 + kMaxToken + 2; }

  // Events: kCommand (kAuthenticate), kError, kClose, kNeedMore.
  Step next(std::string_view input, Command& out) noexcept;
  void swallow_value() {}
  // Whether the next byte is the first of a line.
  bool is_between_commands() const { return dropped_ == 0; }

 private:
  Step token(std::string_view input, size_t line, size_t length, Command& out);

  size_t dropped_ = 0;  // bytes of a value too long that are still to come
};

static_assert(DialectParser<AuthParser>);

}  // namespace egret::memcache
