#include "memcache/auth_parser.h"

#include <algorithm>

#include "memcache/line.h"
#include "memcache/number.h"
#include "memcache/reply.h"

namespace egret::memcache {
namespace {

Line cut(std::string_view text) {
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

}  // namespace

Step AuthParser::next(std::string_view input, Command& out) noexcept {
  const size_t skipped = std::min(dropped_, input.size());
  dropped_ -= skipped;
  const std::string_view rest = input.substr(skipped);
  const size_t newline = rest.find('\n');
  if (dropped_ > 0 || newline == rest.npos) {
    if (rest.size() <= kMaxLine) return {Event::kNeedMore, skipped};
    out.error = {};
    return {Event::kClose, input.size()};
  }
  const Line line = cut(rest.substr(0, newline));
  uint32_t length = 0;
  if (line.count < 5 || line.word(0) != "set" || !parse_u32(line.word(4), length)) {
    return fail(kUnauthenticated, skipped + newline + 1, out);
  }
  const Step step = token(rest, newline + 1, length, out);
  return {step.event, step.consumed + skipped};
}

// The value, from `line` on.
Step AuthParser::token(std::string_view input, size_t line, size_t length, Command& out) {
  if (length > kMaxToken) {
    dropped_ = length + 2;
    return fail(kBadAuthToken, line, out);
  }
  const size_t total = line + length + 2;
  if (input.size() < total) return {Event::kNeedMore, 0};
  if (input.substr(total - 2, 2) != kCrLf) return fail(kBadTermination, total, out);
  const std::string_view token = input.substr(line, length);
  const size_t space = token.find(' ');
  if (space == token.npos) return fail(kBadAuthToken, total, out);
  out.kind = CommandKind::kAuthenticate;
  out.dialect = Dialect::kClassic;
  out.noreply = out.quiet = false;
  out.key = token.substr(0, space);
  out.value = token.substr(space + 1);  // which may have spaces of its own
  return {Event::kCommand, total};
}

}  // namespace egret::memcache
