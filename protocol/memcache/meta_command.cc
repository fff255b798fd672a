// parse_meta(): command word -> key, for ms the value's length -> flags, one by one -> what the flags mean together,
// which differs by command.
#include "memcache/meta_command.h"

#include <bitset>

#include "memcache/base64.h"
#include "memcache/number.h"
#include "memcache/reply.h"

namespace egret::memcache {
namespace {

// What the flags of a line say, whichever command they stand with: all commands know all flags.
struct Flags {
  std::string_view error;
  bool has_error = false;
  char mode = 0;
  bool base64 = false;
  bool new_ttl_asked = false;  // t stands after T
  std::bitset<128> seen;

  bool has(char flag) const { return seen.test(static_cast<size_t>(flag)); }
  void fail(std::string_view line) {
    has_error = true;
    error = line;
  }
};

void read_exptime(std::string_view text, int64_t& exptime, Flags& flags) {
  int32_t value = 0;
  if (!parse_i32(text, value)) return flags.fail(kBadToken);
  exptime = value;
}

void read_number(std::string_view text, uint64_t& number, std::string_view error, Flags& flags) {
  if (!parse_u64(text, number)) flags.fail(error);
}

// One flag with its token. False: memcached looks no further.
bool read_flag(std::string_view word, Flags& flags, Command& out) {
  const auto letter = static_cast<unsigned char>(word[0]);
  if (letter >= 127 || flags.seen.test(letter)) {
    flags.fail(kDuplicateFlag);
    return false;
  }
  flags.seen.set(letter);
  const std::string_view token = word.substr(1);
  switch (word[0]) {
    case 'b':
      flags.base64 = true;
      break;
    case 'N':
      read_exptime(token, out.vivify_exptime, flags);
      break;
    case 'T':
      read_exptime(token, out.exptime, flags);
      break;
    case 'R':
      read_exptime(token, out.recache_below, flags);
      break;
    case 't':
      flags.new_ttl_asked = flags.has('T');
      break;
    case 'O':
      if (word.size() > kMaxOpaqueWord) flags.fail(kOpaqueTooLong);
      break;
    case 'F':
      if (!parse_u32(token, out.client_flags)) flags.has_error = true;
      break;
    case 'C':
      read_number(token, out.cas, kBadToken, flags);
      break;
    case 'E':
      read_number(token, out.new_cas, kBadToken, flags);
      break;
    case 'M':
      flags.mode = token.empty() ? '\0' : token[0];
      break;
    case 'J':
      read_number(token, out.initial, kBadInitial, flags);
      break;
    case 'D':
      read_number(token, out.delta, kBadDeltaValue, flags);
      break;
    case 'P':
    case 'L':  // hints to a proxy of memcached's
    case 'I':
    case 'S':
    case 'c':
    case 'f':
    case 'h':
    case 'k':
    case 'l':
    case 'q':
    case 's':
    case 'u':
    case 'v':
    case 'x':
      break;
    default:
      flags.fail(kInvalidFlag);
      return false;
  }
  return true;
}

Flags read_flags(const Line& line, size_t first, Command& out) {
  Flags flags;
  flags.error = kBadFormat;
  for (size_t i = first; i < line.count; ++i) {
    if (!read_flag(line.word(i), flags, out)) break;
  }
  return flags;
}

bool decode_key(Command& out) {
  static_assert(Command::kOwnBytes >= max_decoded(op::kMaxKeyLength));
  const size_t length = decode_base64(out.key, out.own);
  out.key = {out.own, length};
  return length > 0;
}

void read_get(const Flags& flags, Command& out) {
  out.kind = CommandKind::kMetaGet;
  uint16_t options = op::kWantMeta | op::kWantCas;
  if (!flags.has('v')) options |= op::kNoValue;
  if (flags.has('T')) options |= op::kTouch;
  if (flags.has('C') && flags.has('v')) options |= op::kCompareCas;
  if (flags.has('N')) options |= op::kVivify;
  if (flags.has('N') && flags.has('E')) options |= op::kExplicitCas;
  if (flags.has('R')) options |= op::kRecache;
  if (flags.has('u')) options |= op::kNoBump;
  if (flags.new_ttl_asked) options |= op::kNewTtl;
  out.options = options;
}

// Empty, or the line that says why not.
std::string_view read_set(const Flags& flags, Command& out) {
  out.kind = CommandKind::kMetaSet;
  uint16_t options = op::kWantMeta;
  switch (flags.mode) {
    case 'E':
    case 'e':
      out.mode = op::SetMode::kAdd;
      break;
    case 'A':
    case 'a':
      out.mode = op::SetMode::kAppend;
      break;
    case 'P':
    case 'p':
      out.mode = op::SetMode::kPrepend;
      break;
    case 'R':
    case 'r':
      out.mode = op::SetMode::kReplace;
      break;
    case 0:
    case 'S':
    case 's':
      out.mode = op::SetMode::kSet;
      break;
    default:
      return kBadSetMode;
  }
  const bool extends = out.mode == op::SetMode::kAppend || out.mode == op::SetMode::kPrepend;
  if (flags.has('c')) options |= op::kWantCas;
  if (flags.has('C') && out.mode != op::SetMode::kAdd) {
    options |= op::kCompareCas;
    if (out.mode == op::SetMode::kReplace) out.mode = op::SetMode::kSet;  // with a CAS they are the same
    if (flags.has('I') && !extends) options |= op::kInvalidate;
  }
  if (flags.has('N') && extends) options |= op::kVivify;
  if (flags.has('E')) options |= op::kExplicitCas;
  out.options = options;
  return {};
}

void read_delete(const Flags& flags, Command& out) {
  out.kind = CommandKind::kMetaDelete;
  uint16_t options = 0;
  if (flags.has('C')) options |= op::kCompareCas;
  if (flags.has('I')) options |= op::kInvalidate;
  if (flags.has('x')) options |= op::kDropValue;
  if (flags.has('I') && flags.has('T')) options |= op::kTouch;
  if (flags.has('x') && flags.has('T')) options |= op::kTouch;
  if ((flags.has('I') || flags.has('x')) && flags.has('E')) options |= op::kExplicitCas;
  out.options = options;
}

std::string_view read_arithmetic(const Flags& flags, Command& out) {
  out.kind = CommandKind::kMetaArith;
  uint16_t options = op::kWantMeta | op::kWantCas;
  switch (flags.mode) {
    case 0:
    case 'I':
    case 'i':
    case '+':
      break;
    case 'D':
    case 'd':
    case '-':
      options |= op::kDecrement;
      break;
    default:
      return kBadArithmeticMode;
  }
  if (flags.has('T')) options |= op::kTouch;
  if (flags.has('N')) options |= op::kCreate;
  if (flags.has('C')) options |= op::kCompareCas;
  if (flags.has('E')) options |= op::kExplicitCas;
  if (flags.new_ttl_asked) options |= op::kNewTtl;
  out.options = options;
  return {};
}

// "me <key> [b]": whatever else stands there is passed over.
MetaLine parse_debug(const Line& line, Command& out) {
  out.kind = CommandKind::kMetaDebug;
  out.quiet = false;
  out.options = op::kPeek | op::kNoValue | op::kWantMeta | op::kWantCas;
  if (line.count > 2 && line.word(2) == "b" && !decode_key(out)) return {.error = kBadFormat};
  return {};
}

}  // namespace

MetaLine parse_meta(const Line& line, Command& out) {
  const char command = line.words[0].data[1];
  out.dialect = Dialect::kMeta;
  out.noreply = false;
  out.quiet = false;
  if (line.count < 2) return {.error = command == 'e' ? kBadFormat : kErrorLine};
  if (line.words[1].size > op::kMaxKeyLength) return {.error = kBadFormat};
  out.key = line.word(1);
  out.echo = line.from_word(1);
  if (command == 'e') return parse_debug(line, out);

  const bool sets = command == 's';
  MetaLine result;
  if (sets && line.count < 3) return {.error = kBadFormat};
  if (line.count > kMaxMetaWords) return {.error = command == 'g' ? kFlagsAreTooLong : kFlagsTooLong};
  if (sets) {
    int32_t length = 0;
    if (!parse_i32(line.word(2), length) || length < 0 || length > INT32_MAX - 2) return {.error = kBadFormat};
    out.value_length = static_cast<uint32_t>(length);
    result.has_value_length = true;
  }
  out.mode = op::SetMode::kSet;
  out.client_flags = 0;
  out.exptime = out.vivify_exptime = out.recache_below = 0;
  out.cas = out.new_cas = out.initial = 0;
  out.delta = 1;
  Flags flags = read_flags(line, sets ? 3 : 2, out);
  if (flags.base64 && !flags.has_error && !decode_key(out)) flags.fail(kBadKeyEncoding);
  if (flags.has_error) {
    const bool is_terse = command == 'd' || command == 'a';
    result.error = is_terse && flags.error != kOpaqueTooLong ? kInvalidOrDuplicateFlag : flags.error;
    return result;
  }
  out.quiet = flags.has('q');
  if (command == 'g') read_get(flags, out);
  if (command == 'd') read_delete(flags, out);
  if (command == 's') result.error = read_set(flags, out);
  if (command == 'a') result.error = read_arithmetic(flags, out);
  return result;
}

}  // namespace egret::memcache
