#include "memcache/text/auth_parser.h"

#include <algorithm>

#include "memcache/number.h"
#include "memcache/reply.h"
#include "memcache/text/line.h"

namespace egret::memcache {
namespace {

Line cut(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  Line line;
  line.input = text;
  line.length = line.total = text.size();
  cut_words(line);
  return line;
}

Step fail(std::string_view error, size_t consumed, Command& out) {
  out.dialect = Dialect::kClassic;
  out.error = error;
  return {Event::kError, consumed};
}

Step close(size_t consumed, Command& out) {
  out.error = {};
  return {Event::kClose, consumed};
}

Step authenticate(std::string_view user, std::string_view password, size_t consumed, Command& out) {
  out.kind = CommandKind::kAuthenticate;
  out.dialect = Dialect::kClassic;
  out.noreply = out.quiet = false;
  out.key = user;
  out.value = password;
  return {Event::kCommand, consumed};
}

}  // namespace

Step AuthParser::next(std::string_view input, Command& out) noexcept {
  return left_ > 0 ? passing_token(input, out) : line(input, out);
}

Step AuthParser::line(std::string_view input, Command& out) {
  const size_t newline = input.find('\n');
  if (newline == input.npos) return input.size() <= kMaxLine ? Step{Event::kNeedMore, 0} : close(input.size(), out);
  if (newline < kMinLine) return close(input.size(), out);
  const Line line = cut(input.substr(0, newline));
  uint32_t length = 0;
  if (line.count < 5 || !input.starts_with("set") || !parse_u32(line.word(4), length)) {
    return fail(kUnauthenticated, newline + 1, out);
  }
  if (length > kMaxToken) return fail(kAuthTokenTooLong, newline + 1, out);
  if (length <= kMaxCredentials) return token(input, newline + 1, length, out);
  left_ = length + 2;
  has_space_ = false;
  const Step step = passing_token(input.substr(newline + 1), out);
  return {step.event, step.consumed + newline + 1};
}

// The value, from `line` on.
Step AuthParser::token(std::string_view input, size_t line, size_t length, Command& out) {
  const size_t total = line + length + 2;
  if (input.size() < total) return {Event::kNeedMore, 0};
  if (input.substr(total - 2, 2) != kCrLf) return fail(kBadTermination, total, out);
  const std::string_view token = input.substr(line, length);
  const size_t space = token.find(' ');
  if (space == token.npos) return fail(kBadAuthToken, total, out);
  return authenticate(token.substr(0, space), token.substr(space + 1), total, out);  // the password may have spaces
}

Step AuthParser::passing_token(std::string_view input, Command& out) {
  const std::string_view part = input.substr(0, left_);
  for (const char c : part) {
    has_space_ |= c == ' ';
    last_[0] = last_[1];
    last_[1] = c;
  }
  left_ -= part.size();
  if (left_ > 0) return {Event::kNeedMore, part.size()};
  if (std::string_view(last_, 2) != kCrLf) return fail(kBadTermination, part.size(), out);
  if (!has_space_) return fail(kBadAuthToken, part.size(), out);
  return authenticate({}, {}, part.size(), out);
}

}  // namespace egret::memcache
