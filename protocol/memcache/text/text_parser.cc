//   next() ─┬─ usual_get(): most gets
//           └─ any() ─ step(), by state ─┬─ line(), once there is a newline ─ dispatch(), by command word ─ one function each
//                                        ├─ exptime(), keys(): the rest of a retrieval's line, key by key
//                                        └─ value(): of more than Limits::inline_value bytes, in pieces
//
// A retrieval's line may be longer than any buffer, since its keys are events of their own. Other commands are one event.
#include "memcache/text/text_parser.h"

#include <algorithm>
#include <cstring>

#include "memcache/admin.h"
#include "memcache/number.h"
#include "memcache/reply.h"
#include "memcache/text/line.h"
#include "memcache/text/meta_command.h"

namespace egret::memcache {

namespace {

bool retrieval_kind(std::string_view word, CommandKind& kind) {
  if (word.size() < 3 || word.size() > 4) return false;
  switch (pack(word)) {
    case pack("get"):
      kind = CommandKind::kGet;
      return true;
    case pack("gets"):
      kind = CommandKind::kGets;
      return true;
    case pack("gat"):
      kind = CommandKind::kGat;
      return true;
    case pack("gats"):
      kind = CommandKind::kGats;
      return true;
    default:
      return false;
  }
}

bool has_exptime(CommandKind kind) {
  return kind == CommandKind::kGat || kind == CommandKind::kGats;
}

// Whether a key between `p` and `end` is too long; memcached then answers only that error. For gat, `p` is before the
// exptime, and a bad exptime has priority over a bad key.
bool has_long_key(const char* p, const char* end, CommandKind kind) {
  bool is_key = !has_exptime(kind);
  for (;;) {
    p = skip_spaces(p, end);
    const char* const word_end = find_word_end(p, end);
    if (word_end == p) return false;
    const std::string_view word(p, static_cast<size_t>(word_end - p));
    int32_t exptime = 0;
    if (!is_key && !parse_i32(word, exptime)) return false;
    if (is_key && word.size() > TextParser::kMaxKeyLength) return true;
    is_key = true;
    p = word_end;
  }
}

// A word of a retrieval line, whose newline may not have arrived yet.
struct NextWord {
  std::string_view word;  // empty at the end of the line
  size_t start;           // spaces skipped
  size_t end;             // offset after the word
  size_t stop;            // offset of ended_by
  char ended_by;          // ' ' or '\n'; 'x' if the input ends first
};

NextWord next_word(std::string_view input) {
  const char* const begin = input.data();
  const char* const end = begin + input.size();
  const char* const start = skip_spaces(begin, end);
  const char* const stop = find_word_end(start, end);
  const char ended_by = stop == end ? 'x' : *stop;
  const char* const word_end = ended_by == '\n' && stop > start && stop[-1] == '\r' ? stop - 1 : stop;
  return {{start, static_cast<size_t>(word_end - start)},
          static_cast<size_t>(start - begin),
          static_cast<size_t>(word_end - begin),
          static_cast<size_t>(stop - begin),
          ended_by};
}

// An unfinished word of this length is too long for a key, even if its last byte is the \r of the line's end.
constexpr size_t kHopelessWord = TextParser::kMaxKeyLength + 2;

}  // namespace

TextParser::TextParser(const Limits& limits)
    : limits_{limits.inline_value, std::max(limits.retrieval_line, kMaxLine + 1)} {}

size_t TextParser::min_buffer(const Limits& limits) {
  return std::max(limits.retrieval_line, kMaxLine + 1 + limits.inline_value + 2);
}

Step TextParser::next(std::string_view input, Command& out) noexcept {
  const Step now = usual_get(input, out);
  return now.event != Event::kNeedMore ? now : any(input, out);
}

Step TextParser::any(std::string_view input, Command& out) {
  size_t used = 0;
  for (;;) {
    const Step now = step(input.substr(used), out);
    used += now.consumed;
    if (now.event != Event::kNeedMore || now.consumed == 0) return {now.event, used, used - now.consumed};
  }
}

void TextParser::swallow_value() {
  if (state_ != State::kValue) return;
  left_ += 2;
  state_ = State::kSwallow;
}

inline Step TextParser::step(std::string_view input, Command& out) {
  switch (state_) {
    case State::kLine:
      return line(input, out);
    case State::kExptime:
      return exptime(input, out);
    case State::kKeys:
      return keys(input, out);
    case State::kSkip:
      return skip(input);
    case State::kValue:
      return value(input, out);
    case State::kSwallow:
      return swallow(input);
    case State::kClosed:
      break;
  }
  return close(input.size(), out);
}

// --- What most of a client's bytes are

// The next key, or the end, of a line as clients write it: "get KEY KEY...\r\n". kNeedMore: not taken here, so the functions
// below parse it. These are incomplete lines, all other commands, and the first of several keys: before that one is taken,
// the whole line must be searched for a key that is too long.
[[gnu::always_inline]] inline Step TextParser::usual_get(std::string_view input, Command& out) {
  constexpr Step kUnusual{Event::kNeedMore, 0};
  const bool is_first = state_ == State::kLine;
  if (state_ == State::kKeys) {
    if (seen_key_ && input.starts_with("\r\n")) return end_of_keys(2, out);
    if (!input.starts_with(' ')) return kUnusual;
  } else if (!is_first || needed_ != 0 || !input.starts_with("get ")) {
    return kUnusual;
  }
  const char* const end = input.data() + input.size();
  const char* const key = input.data() + (is_first ? 4 : 1);
  const char* const stop = find_word_end(key, end);
  if (stop == end) return kUnusual;
  const bool ends_line = *stop == '\n';
  if (ends_line ? stop[-1] != '\r' : is_first) return kUnusual;
  const auto length = static_cast<size_t>(stop - key) - (ends_line ? 1 : 0);
  if (length == 0 || length > kMaxKeyLength) return kUnusual;
  if (is_first) begin_keys(CommandKind::kGet, out);
  return key_of(std::string_view(key, length), static_cast<size_t>(key - input.data()) + length, out);
}

// --- Lines

Step TextParser::line(std::string_view input, Command& out) {
  if (input.size() < needed_) return {Event::kNeedMore, 0};
  const size_t window = std::min(input.size(), limits_.retrieval_line);
  const char* const begin = input.data();
  const void* found = window > searched_ ? std::memchr(begin + searched_, '\n', window - searched_) : nullptr;
  if (found == nullptr) return unfinished_line(input, out);

  out.dialect = Dialect::kClassic;
  out.quiet = false;
  Line line;
  line.input = input;
  line.length = static_cast<size_t>(static_cast<const char*>(found) - begin);
  line.total = line.length + 1;
  if (line.length > 0 && begin[line.length - 1] == '\r') --line.length;
  if (line.length > 4 && std::memcmp(begin, "get ", 4) == 0) return retrieval(line, CommandKind::kGet, 3, out);
  cut_words(line);
  return dispatch(line, out);
}

// There is no newline yet. As in memcached, only a retrieval may grow beyond kMaxLine (here gat and gats, too). So may
// a retrieval after spaces, although it will be an error.
Step TextParser::unfinished_line(std::string_view input, Command& out) {
  constexpr size_t kMaxLeadingSpaces = 100;
  searched_ = std::min(input.size(), limits_.retrieval_line);
  if (input.size() <= kMaxLine) return {Event::kNeedMore, 0};
  const char* const end = input.data() + input.size();
  const char* const word = skip_spaces(input.data(), end);
  const char* const word_end = find_word_end(word, std::min(end, word + 5));
  CommandKind kind{};
  if (word - input.data() > static_cast<ptrdiff_t>(kMaxLeadingSpaces) || word_end == end || *word_end != ' ' ||
      !retrieval_kind({word, static_cast<size_t>(word_end - word)}, kind)) {
    return close(input.size(), out);
  }
  if (searched_ < limits_.retrieval_line) return {Event::kNeedMore, 0};
  if (word != input.data()) {
    const Step failed = fail(kErrorLine, false, input.size(), out);
    state_ = State::kSkip;
    return failed;
  }
  begin_keys(kind, out);
  return {Event::kNeedMore, static_cast<size_t>(word_end - input.data())};
}

// As in memcached, a line of fewer than four bytes, its end included, is never a command, and only operators' commands
// may come after spaces.
Step TextParser::dispatch(Line& line, Command& out) {
  constexpr size_t kShortestLine = 4;
  if (line.total < kShortestLine) return fail(kBadFormat, false, line.total, out);
  const std::string_view word = line.count > 0 ? line.word(0) : std::string_view{};
  // pack() cannot distinguish a word from the same word with a NUL after it.
  if (!line.begins_with_word() || word.size() > 8 || word.back() == '\0') return other(line, out);
  switch (pack(word)) {
    case pack("get"):
      return retrieval(line, CommandKind::kGet, 3, out);
    case pack("gets"):
      return retrieval(line, CommandKind::kGets, 4, out);
    case pack("gat"):
    case pack("gats"):
      if (line.count < 3) return fail(kBadFormat, false, line.total, out);
      return retrieval(line, word.size() == 3 ? CommandKind::kGat : CommandKind::kGats, word.size(), out);
    case pack("set"):
      return storage(line, CommandKind::kSet, out);
    case pack("add"):
      return storage(line, CommandKind::kAdd, out);
    case pack("replace"):
      return storage(line, CommandKind::kReplace, out);
    case pack("append"):
      return storage(line, CommandKind::kAppend, out);
    case pack("prepend"):
      return storage(line, CommandKind::kPrepend, out);
    case pack("cas"):
      return storage(line, CommandKind::kCas, out);
    case pack("incr"):
      return arithmetic(line, CommandKind::kIncr, out);
    case pack("decr"):
      return arithmetic(line, CommandKind::kDecr, out);
    case pack("delete"):
      return remove(line, out);
    case pack("touch"):
      return touch(line, out);
    case pack("stats"):
      return stats(line, out);
    case pack("watch"):
      return admin(line, out);
    case pack("version"):
      return plain(line, CommandKind::kVersion, out);
    case pack("quit"):
      return plain(line, CommandKind::kQuit, out);
    case pack("mg"):
    case pack("ms"):
    case pack("md"):
    case pack("ma"):
    case pack("me"):
      return meta(line, out);
    case pack("mn"):
      out.dialect = Dialect::kMeta;
      return plain(line, CommandKind::kNoop, out);
    default:
      return other(line, out);
  }
}

// Only checks that no key is too long, before the first one is reported. keys() then reports them one by one.
Step TextParser::retrieval(const Line& line, CommandKind kind, size_t word_end, Command& out) {
  const char* const begin = line.input.data();
  if (line.length > kMaxKeyLength && has_long_key(begin + word_end, begin + line.length, kind)) {
    return fail(kBadFormat, false, line.total, out);
  }
  begin_keys(kind, out);
  const std::string_view rest = line.input.substr(word_end);
  const Step first = state_ == State::kKeys ? keys(rest, out) : exptime(rest, out);
  return {first.event, first.consumed + word_end};
}

// If the value's length is valid, the value is never parsed as commands, even if the rest of the line is wrong.
Step TextParser::storage(const Line& line, CommandKind kind, Command& out) {
  int32_t length = 0;
  if (line.count < 5 || !parse_i32(line.word(4), length) || length < 0 || length > INT32_MAX - 2) {
    return fail(kBadFormat, false, line.total, out);
  }
  const bool noreply = line.noreply();
  out.value_length = static_cast<uint32_t>(length);
  int32_t exptime = 0;
  if (line.words[1].size > kMaxKeyLength || !parse_c_u32(line.word(2), out.client_flags) ||
      !parse_c_i32(line.word(3), exptime) ||
      (kind == CommandKind::kCas && (line.count < 6 || !parse_u64(line.word(5), out.cas)))) {
    return fail_with_value(kBadFormat, noreply, line, out);
  }
  out.kind = kind;
  out.noreply = noreply;
  out.key = line.word(1);
  out.exptime = exptime;
  return value_of(line, out);
}

// Chooses how to read the value after the line of a storage command.
Step TextParser::value_of(const Line& line, Command& out) {
  if (out.value_length <= limits_.inline_value) return stored_value(line, out);
  left_ = out.value_length;
  done(Event::kNeedMore, 0);
  state_ = State::kValue;
  return {Event::kValueBegin, line.total};
}

// A value that is reported whole: waits until all of it is there, terminator included.
Step TextParser::stored_value(const Line& line, Command& out) {
  const size_t total = line.total + out.value_length + 2;
  if (line.input.size() < total) {
    // A line of more than kMaxLine might not fit into the buffer together with its value.
    if (line.total > kMaxLine + 1) return close(line.input.size(), out);
    searched_ = line.total - 1;
    needed_ = total;
    return {Event::kNeedMore, 0};
  }
  const char* const value = line.input.data() + line.total;
  if (value[out.value_length] != '\r' || value[out.value_length + 1] != '\n') {
    return fail(kBadDataChunk, out.noreply, total, out);
  }
  out.value = {value, out.value_length};
  return done(Event::kCommand, total);
}

Step TextParser::arithmetic(const Line& line, CommandKind kind, Command& out) {
  if (line.count < 3) return fail(kBadFormat, false, line.total, out);
  out.noreply = line.noreply();
  if (line.words[1].size > kMaxKeyLength) return fail(kBadFormat, out.noreply, line.total, out);
  if (!parse_u64(line.word(2), out.delta)) return fail(kBadDelta, out.noreply, line.total, out);
  out.kind = kind;
  out.key = line.word(1);
  return done(Event::kCommand, line.total);
}

Step TextParser::remove(const Line& line, Command& out) {
  if (line.count < 2) return fail(kBadFormat, false, line.total, out);
  out.noreply = line.noreply();
  if (line.words[1].size > kMaxKeyLength) return fail(kBadFormat, out.noreply, line.total, out);
  out.kind = CommandKind::kDelete;
  out.key = line.word(1);
  return done(Event::kCommand, line.total);
}

Step TextParser::touch(const Line& line, Command& out) {
  if (line.count < 3) return fail(kBadFormat, false, line.total, out);
  out.noreply = line.noreply();
  if (line.words[1].size > kMaxKeyLength) return fail(kBadFormat, out.noreply, line.total, out);
  int32_t exptime = 0;
  if (!parse_i32(line.word(2), exptime)) return fail(kBadExptime, out.noreply, line.total, out);
  out.kind = CommandKind::kTouch;
  out.key = line.word(1);
  out.exptime = exptime;
  return done(Event::kCommand, line.total);
}

Step TextParser::flush_all(const Line& line, Command& out) {
  out.noreply = line.noreply();
  int32_t delay = 0;
  if (line.count != (out.noreply ? 2 : 1) && !parse_i32(line.word(1), delay)) {
    return fail(kBadExptime, out.noreply, line.total, out);
  }
  out.kind = CommandKind::kFlushAll;
  out.exptime = delay;
  return done(Event::kCommand, line.total);
}

Step TextParser::verbosity(const Line& line, Command& out) {
  out.noreply = line.noreply();
  uint32_t level = 0;
  if (line.count < 2 || !parse_u32(line.word(1), level)) return fail(kBadFormat, out.noreply, line.total, out);
  out.kind = CommandKind::kVerbosity;
  out.delta = level;
  return done(Event::kCommand, line.total);
}

Step TextParser::stats(const Line& line, Command& out) {
  out.argument_count = static_cast<uint8_t>(line.count - 1);
  for (size_t i = 0; i < Command::kMaxArguments; ++i) {
    out.arguments[i] = i + 1 < line.count ? line.word(i + 1) : std::string_view{};
  }
  return plain(line, CommandKind::kStats, out);
}

Step TextParser::meta(const Line& line, Command& out) {
  const MetaLine parsed = parse_meta(line, out);
  if (!parsed.error.empty()) {
    if (parsed.has_value_length) return fail_with_value(parsed.error, false, line, out);
    return fail(parsed.error, false, line.total, out);
  }
  if (out.kind == CommandKind::kMetaSet) return value_of(line, out);
  const bool reads_value = out.kind == CommandKind::kMetaGet && (out.options & op::kNoValue) == 0;
  return done(reads_value ? Event::kKey : Event::kCommand, line.total);
}

// Operators' commands and unknown ones. As memcached, closes the connection of a web browser.
Step TextParser::other(const Line& line, Command& out) {
  if (line.count == 0) return fail(kErrorLine, false, line.total, out);
  const std::string_view word = line.word(0);
  if (word == "flush_all") return flush_all(line, out);
  if (word == "verbosity") return verbosity(line, out);
  if (word != "watch" && is_admin_word(word)) return admin(line, out);
  if (line.count > 1 && line.last().starts_with("HTTP/")) return close(line.total, out);
  return fail(kErrorLine, line.noreply(), line.total, out);
}

// Passed on as a line; admin.cc parses it when its turn comes.
Step TextParser::admin(const Line& line, Command& out) {
  out.echo = line.from_word(0);
  return plain(line, CommandKind::kAdmin, out);
}

// --- Retrieval lines, after their command word. The newline need not have arrived.

Step TextParser::exptime(std::string_view input, Command& out) {
  const NextWord next = next_word(input);
  if (next.ended_by == 'x' && next.word.size() < kHopelessWord) return {Event::kNeedMore, next.start};
  const bool ok = parse_i32(next.word, exptime_);
  if (ok && next.ended_by != 'x') {
    state_ = State::kKeys;
    return {Event::kNeedMore, next.end};
  }
  const Step failed = fail(next.word.empty() ? kBadFormat : kBadExptime, false, next.end, out);
  state_ = State::kSkip;
  return failed;
}

Step TextParser::keys(std::string_view input, Command& out) {
  const NextWord next = next_word(input);
  if (next.word.size() > kMaxKeyLength && (next.ended_by != 'x' || next.word.size() >= kHopelessWord)) {
    const Step failed = fail(kBadFormat, false, next.end, out);
    state_ = State::kSkip;
    return failed;
  }
  if (next.ended_by == 'x') return {Event::kNeedMore, next.start};
  if (!next.word.empty()) return key_of(next.word, next.end, out);
  return end_of_keys(next.stop + 1, out);
}

// The line's command word has been read, and is a retrieval's.
inline void TextParser::begin_keys(CommandKind kind, Command& out) {
  out.quiet = false;
  kind_ = kind;
  seen_key_ = false;
  done(Event::kNeedMore, 0);
  state_ = has_exptime(kind) ? State::kExptime : State::kKeys;
}

inline Step TextParser::key_of(std::string_view key, size_t consumed, Command& out) {
  seen_key_ = true;
  out.kind = kind_;
  out.dialect = Dialect::kClassic;
  out.noreply = false;
  out.key = key;
  out.exptime = exptime_;
  return {Event::kKey, consumed};
}

Step TextParser::end_of_keys(size_t consumed, Command& out) {
  if (!seen_key_) return fail(kBadFormat, false, consumed, out);
  out.kind = kind_;
  out.noreply = false;
  return done(Event::kEndOfKeys, consumed);
}

Step TextParser::skip(std::string_view input) {
  const size_t line_end = input.find('\n');
  if (line_end == input.npos) return {Event::kNeedMore, input.size()};
  return done(Event::kNeedMore, line_end + 1);
}

// --- Values

Step TextParser::value(std::string_view input, Command& out) {
  if (left_ > 0) {
    if (input.empty()) return {Event::kNeedMore, 0};
    out.value = input.substr(0, left_);
    left_ -= out.value.size();
    return {Event::kValuePart, out.value.size()};
  }
  if (input.size() < 2) return {Event::kNeedMore, 0};
  out.terminator_ok = input[0] == '\r' && input[1] == '\n';
  return done(Event::kValueEnd, 2);
}

Step TextParser::swallow(std::string_view input) {
  const size_t dropped = std::min(input.size(), left_);
  left_ -= dropped;
  if (left_ == 0) return done(Event::kNeedMore, dropped);
  return {Event::kNeedMore, dropped};
}

// --- Ends

Step TextParser::done(Event event, size_t consumed) {
  state_ = State::kLine;
  searched_ = 0;
  needed_ = 0;
  return {event, consumed};
}

Step TextParser::plain(const Line& line, CommandKind kind, Command& out) {
  out.kind = kind;
  out.noreply = false;
  const Step step = done(Event::kCommand, line.total);
  if (kind == CommandKind::kQuit) state_ = State::kClosed;
  return step;
}

// noreply suppresses errors, too: the client expects no answer at all.
Step TextParser::fail(std::string_view error, bool noreply, size_t consumed, Command& out) {
  if (noreply) return done(Event::kNeedMore, consumed);
  out.error = error;
  return done(Event::kError, consumed);
}

// An error whose line is followed by a value: drops the value.
Step TextParser::fail_with_value(std::string_view error, bool noreply, const Line& line, Command& out) {
  const Step failed = fail(error, noreply, line.total, out);
  left_ = size_t{out.value_length} + 2;
  state_ = State::kSwallow;
  return failed;
}

Step TextParser::close(size_t consumed, Command& out) {
  out.error = {};
  state_ = State::kClosed;
  return {Event::kClose, consumed};
}

}  // namespace egret::memcache
