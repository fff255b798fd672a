// parse_meta(): command word -> key and, for ms, the value's length -> each flag -> the meaning of all flags together,
// by command.
#include "memcache/text/meta_command.h"

#include <bitset>

#include "memcache/number.h"
#include "memcache/reply.h"
#include "memcache/text/base64.h"

namespace egret::memcache {
namespace {

// The flags of a line. Every command accepts every flag.
struct Flags {
  std::string_view error;
  bool has_error = false;
  char mode = 0;
  bool base64 = false;
  bool new_ttl_asked = false;    // t comes after T
  bool recache_is_late = false;  // R comes after T
  bool ttl_is_last = false;      // T comes after N
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

// Flags that only Flags::has() is asked for. P and L are hints to a proxy of memcached's.
constexpr std::string_view kBareFlags = "PLIcfhklqsuvx";

// Reads one flag with its token. False: memcached ignores the flags after it.
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
      flags.ttl_is_last = false;
      break;
    case 'T':
      read_exptime(token, out.exptime, flags);
      flags.ttl_is_last = flags.has('N');
      break;
    case 'R':
      read_exptime(token, out.recache_below, flags);
      flags.recache_is_late = flags.has('T');
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
      flags.mode = token.empty() ? ' ' : token[0];  // only the first letter counts
      break;
    case 'J':
      read_number(token, out.initial, kBadInitial, flags);
      break;
    case 'D':
      read_number(token, out.delta, kBadDeltaValue, flags);
      break;
    default:
      if (kBareFlags.find(word[0]) != std::string_view::npos) return true;
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
  if (flags.recache_is_late) options |= op::kTouchFirst;
  if (flags.has('u')) options |= op::kNoBump;
  if (flags.new_ttl_asked) options |= op::kNewTtl;
  out.options = options;
}

// Empty, or an error line.
std::string_view read_set(const Flags& flags, Command& out) {
  out.kind = CommandKind::kMetaSet;
  uint16_t options = op::kWantMeta;
  switch (flags.mode) {
    case 'E':
      out.mode = op::SetMode::kAdd;
      break;
    case 'A':
      out.mode = op::SetMode::kAppend;
      break;
    case 'P':
      out.mode = op::SetMode::kPrepend;
      break;
    case 'R':
      out.mode = op::SetMode::kReplace;
      break;
    case 0:
    case 'S':
      out.mode = op::SetMode::kSet;
      break;
    default:
      return kBadSetMode;
  }
  const bool extends = out.mode == op::SetMode::kAppend || out.mode == op::SetMode::kPrepend;
  if (flags.has('c')) options |= op::kWantCas;
  // In append and prepend a CAS of 0 means no CAS; elsewhere it matches no item.
  const bool compares = flags.has('C') && (out.cas != 0 || !extends);
  if (compares && out.mode != op::SetMode::kAdd) {
    options |= op::kCompareCas;
    if (out.mode == op::SetMode::kReplace) out.mode = op::SetMode::kSet;  // with a CAS both do the same
    if (flags.has('I') && !extends && out.cas != 0) options |= op::kInvalidate;
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
    case '+':
      break;
    case 'D':
    case '-':
      options |= op::kDecrement;
      break;
    default:
      return kBadArithmeticMode;
  }
  if (flags.has('T')) options |= op::kTouch;
  if (flags.has('N')) options |= op::kCreate;
  if (flags.has('C') && out.cas != 0) options |= op::kCompareCas;
  if (flags.has('E')) options |= op::kExplicitCas;
  if (flags.new_ttl_asked) options |= op::kNewTtl;
  out.options = options;
  return {};
}

// "me <key> [b]": other words are ignored.
MetaLine parse_debug(const Line& line, Command& out) {
  out.kind = CommandKind::kMetaDebug;
  out.quiet = false;
  out.options = op::kPeek | op::kNoValue | op::kWantMeta | op::kWantCas;
  if (line.count > 2 && line.word(2) == "b" && !decode_key(out)) return {.error = kBadFormat};
  return {};
}

// Reads the words between the command word and the flags. Empty, or an error line.
std::string_view read_head(const Line& line, bool sets, Command& out, MetaLine& result) {
  if (line.count < (sets ? 3 : 2)) return kBadFormat;
  if (sets) {
    int32_t length = 0;
    if (!parse_i32(line.word(2), length) || length < 0 || length > INT32_MAX - 2) return kBadFormat;
    out.value_length = static_cast<uint32_t>(length);
    result.has_value_length = true;
  }
  if (line.words[1].size > op::kMaxKeyLength) return kBadFormat;
  out.key = line.word(1);
  out.echo = line.from_word(1);
  return {};
}

// A flag begins with a letter, a digit or a character between Z and a. Any other word makes the whole line wrong.
bool are_flags(const Line& line, size_t first) {
  for (size_t i = first; i < line.count; ++i) {
    const char letter = line.words[i].data[0];
    const bool is_digit = letter >= '0' && letter <= '9';
    if (!is_digit && (letter < 'A' || letter > 'z')) return false;
  }
  return true;
}

void clear_fields(Command& out) {
  out.mode = op::SetMode::kSet;
  out.client_flags = 0;
  out.exptime = out.vivify_exptime = out.recache_below = 0;
  out.cas = out.new_cas = out.initial = 0;
  out.delta = 1;
}

// Reads the flags into `out`. Empty, or an error line.
std::string_view read_meaning(char command, const Line& line, Command& out) {
  if (line.count > kMaxMetaWords) return kFlagsAreTooLong;
  clear_fields(out);
  Flags flags = read_flags(line, command == 's' ? 3 : 2, out);
  if (flags.base64 && !flags.has_error && !decode_key(out)) flags.fail(kBadKeyEncoding);
  if (flags.has_error) return flags.error;
  out.quiet = flags.has('q');
  if (flags.ttl_is_last && command != 's') out.vivify_exptime = out.exptime;  // as memcached, T after N wins
  if (command == 's') return read_set(flags, out);
  if (command == 'a') return read_arithmetic(flags, out);
  command == 'd' ? read_delete(flags, out) : read_get(flags, out);
  return {};
}

// ma answers all errors by the same line, except for two.
std::string_view said_by_arithmetic(std::string_view error) {
  const bool is_told = error.empty() || error == kOpaqueTooLong || error == kBadArithmeticMode;
  return is_told ? error : kInvalidOrDuplicateFlag;
}

}  // namespace

MetaLine parse_meta(const Line& line, Command& out) {
  const char command = line.words[0].data[1];
  out.dialect = Dialect::kMeta;
  out.noreply = false;
  out.quiet = false;
  MetaLine result;
  if (!are_flags(line, command == 's' ? 3 : 2)) {
    result.error = kBadFormat;
    return result;
  }
  result.error = read_head(line, command == 's', out, result);
  const bool has_key = line.count >= 2;
  if (result.error.empty()) {
    if (command == 'e') return parse_debug(line, out);
    result.error = read_meaning(command, line, out);
  }
  if (command == 'a' && has_key) result.error = said_by_arithmetic(result.error);
  return result;
}

}  // namespace egret::memcache
