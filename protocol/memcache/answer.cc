#include "memcache/answer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "memcache/number.h"
#include "memcache/reply.h"
#include "memcache/text/meta_command.h"
#include "op/item_size.h"
#include "op/stats.h"

namespace egret::memcache {

using binary::Opcode;
using binary::Status;
using op::Result;
using op::ResultCode;

namespace {

// --- Classic

std::string_view out_of_memory_line(CommandKind kind) {
  if (is_storage(kind)) return kOutOfMemoryStoring;
  return is_retrieval(kind) || kind == CommandKind::kMetaGet ? kOutOfMemoryGet : kOutOfMemory;
}

// The error line of a failure, the same in all text dialects; empty for a success.
std::string_view failure_line(CommandKind kind, ResultCode code) {
  switch (code) {
    case ResultCode::kNonNumeric:
      return kNonNumeric;
    case ResultCode::kTooLarge:
      return kTooLarge;
    case ResultCode::kOutOfMemory:
      return out_of_memory_line(kind);
    case ResultCode::kSessionLost:
    case ResultCode::kNotSent:
      return kBackendUnavailable;
    case ResultCode::kTimedOut:
      return kBackendTimedOut;
    case ResultCode::kForbidden:
      return kBackendForbids;
    case ResultCode::kChanged:
    case ResultCode::kNoUpload:
    case ResultCode::kUnsupported:
    case ResultCode::kInvalid:
    case ResultCode::kWrongPartition:
      return kBackendRefused;
    default:
      return {};
  }
}

std::string_view classic_line(ResultCode code) {
  switch (code) {
    case ResultCode::kOk:
      return kOk;
    case ResultCode::kHit:
      return kTouched;
    case ResultCode::kMiss:
      return kNotFound;
    case ResultCode::kStored:
      return kStored;
    case ResultCode::kNotStored:
      return kNotStored;
    case ResultCode::kExists:
      return kExists;
    case ResultCode::kDeleted:
      return kDeleted;
    default:
      return kBackendRefused;
  }
}

char* write_classic(char* out, const Question& question, const Result& result) {
  if (question.noreply) return out;
  if (is_retrieval(question.kind) && (result.code == ResultCode::kHit || result.code == ResultCode::kMiss)) return out;
  if (const std::string_view line = failure_line(question.kind, result.code); !line.empty()) {
    return write_text(out, line);
  }
  if (result.code == ResultCode::kNumber) return write_number(out, result.number);
  return write_text(out, classic_line(result.code));
}

// --- Meta

// The words of Question::echo, one after the other.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  // Empty at the end.
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  std::string_view rest_;
};

// Whether the flag is among the words after the key. The length of an ms's value is never taken for a flag.
bool has_flag(std::string_view echo, char flag) {
  Words words(echo);
  words.next();
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word[0] == flag) return true;
  }
  return false;
}

char* write_digits(char* out, uint64_t number) {
  return std::to_chars(out, out + kMaxDigits, number).ptr;
}

char* write_flag(char* out, char letter, uint64_t number) {
  *out++ = ' ';
  *out++ = letter;
  return write_digits(out, number);
}

char* write_ttl(char* out, int64_t ttl) {
  if (ttl >= 0) return write_flag(out, 't', static_cast<uint64_t>(ttl));
  return write_text(out, " t-1");
}

// The size of the item's value now: of a refused set the size that the client sent.
uint64_t size_now(const Question& question, const Result& result) {
  if (question.kind != CommandKind::kMetaSet) return result.total_length;
  return result.code == ResultCode::kStored ? result.number : question.value_length;
}

// The ttl at a flag `t` of a line that created the item, as memcached reports it. `given` is the last N or T word
// before that flag, if any; `rest` are the words after it.
int64_t ttl_so_far(Words rest, std::string_view given, const Result& result) {
  if (given.empty()) return -1;
  for (std::string_view word = rest.next(); !word.empty(); word = rest.next()) {
    int32_t ttl = 0;
    if (word[0] == 'N' || word[0] == 'T') return parse_i32(given.substr(1), ttl) && ttl != 0 ? ttl : -1;
  }
  return result.ttl;
}

// Writes what one flag of the command asks for, if anything. `key` is the key as the client wrote it.
char* write_return_flag(char* out, const Question& question, std::string_view word, std::string_view key, bool base64,
                        int64_t ttl, const Result& result) {
  const bool reads = question.kind == CommandKind::kMetaGet;
  const bool sets = question.kind == CommandKind::kMetaSet;
  const bool counts = question.kind == CommandKind::kMetaArith;
  const bool has_item = result.code == ResultCode::kHit || result.code == ResultCode::kNumber;
  switch (word[0]) {
    case 'O':
      *out++ = ' ';
      return write_text(out, word);
    case 'k':
      out = write_text(write_text(out, " k"), key);
      return base64 ? write_text(out, " b") : out;
    case 'c':
      if ((reads || counts) && !has_item) return out;
      return reads || counts || sets ? write_flag(out, 'c', result.cas) : out;
    case 's':
      return (reads && has_item) || sets ? write_flag(out, 's', size_now(question, result)) : out;
    case 't':
      return (reads || counts) && has_item ? write_ttl(out, ttl) : out;
    case 'f':
      return reads && has_item ? write_flag(out, 'f', result.client_flags) : out;
    case 'l':
      return reads && has_item ? write_flag(out, 'l', result.last_access) : out;
    case 'h':
      return reads && has_item ? write_flag(out, 'h', (result.marks & op::kFetched) != 0 ? 1 : 0) : out;
    default:
      return out;
  }
}

char* write_return_flags(char* out, const Question& question, const Result& result) {
  Words words(question.echo);
  const std::string_view key = words.next();
  if (question.kind == CommandKind::kMetaSet) words.next();  // the value's length
  const bool base64 = has_flag(question.echo, 'b');
  const bool is_new = (result.marks & op::kCreated) != 0;
  std::string_view given;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const int64_t ttl = is_new && word[0] == 't' ? ttl_so_far(words, given, result) : result.ttl;
    out = write_return_flag(out, question, word, key, base64, ttl, result);
    if (word[0] == 'N' || word[0] == 'T') given = word;
  }
  if (result.code != ResultCode::kHit) return out;
  if ((result.marks & op::kTokenSent) != 0) out = write_text(out, " Z");
  if ((result.marks & op::kStale) != 0) out = write_text(out, " X");
  if ((result.marks & op::kWon) != 0) out = write_text(out, " W");
  return out;
}

// The answer's code; empty if the answer has none.
std::string_view meta_code(const Question& question, ResultCode code) {
  switch (code) {
    case ResultCode::kHit:
    case ResultCode::kStored:
    case ResultCode::kDeleted:
    case ResultCode::kNumber:
      return "HD";
    case ResultCode::kMiss:
      return question.kind == CommandKind::kMetaGet ? "EN" : "NF";
    case ResultCode::kNotStored:
      return "NS";
    case ResultCode::kExists:
      return "EX";
    default:
      return {};
  }
}

bool is_hushed(const Question& question, ResultCode code) {
  if (!question.quiet) return false;
  const bool reads = question.kind == CommandKind::kMetaGet || question.kind == CommandKind::kGet;
  return reads ? code == ResultCode::kMiss
               : code == ResultCode::kStored || code == ResultCode::kDeleted || code == ResultCode::kNumber ||
                     code == ResultCode::kOk;
}

// "ME <key> exp=... la=... cas=... fetch=... cls=... size=..."
char* write_debug(char* out, const Question& question, std::string_view key, const Result& result) {
  if (result.code == ResultCode::kMiss) return write_text(out, "EN\r\n");
  const uint64_t size = op::memcached_item_size(key.size(), result.client_flags, result.total_length);
  out = write_text(write_text(out, "ME "), Words(question.echo).next());
  out = write_text(out, " exp=");
  out = result.ttl < 0 ? write_text(out, "-1") : write_digits(out, static_cast<uint64_t>(result.ttl));
  out = write_digits(write_text(out, " la="), result.last_access);
  out = write_digits(write_text(out, " cas="), result.cas);
  out = write_text(out, (result.marks & op::kFetched) != 0 ? " fetch=yes" : " fetch=no");
  out = write_digits(write_text(out, " cls="), op::shown_class_of(key.size(), result.total_length));
  out = write_digits(write_text(out, " size="), size);
  return write_text(out, kCrLf);
}

char* write_meta(char* out, const Question& question, std::string_view key, const Result& result) {
  if (const std::string_view line = failure_line(question.kind, result.code); !line.empty()) {
    return write_text(out, line);
  }
  if (is_hushed(question, result.code)) return out;
  if (question.kind == CommandKind::kMetaDebug) return write_debug(out, question, key, result);
  // ma with v: the number is sent as a value.
  const bool shows_number = result.code == ResultCode::kNumber && has_value(question, result);
  char digits[kMaxDigits];
  const std::string_view number(digits, shows_number ? write_digits(digits, result.number) - digits : 0);
  out = shows_number ? write_digits(write_text(out, "VA "), number.size())
                     : write_text(out, meta_code(question, result.code));
  out = write_text(write_return_flags(out, question, result), kCrLf);
  return shows_number ? write_text(write_text(out, number), kCrLf) : out;
}

// --- Binary

Status status_of(CommandKind kind, ResultCode code) {
  switch (code) {
    case ResultCode::kOk:
    case ResultCode::kHit:
    case ResultCode::kStored:
    case ResultCode::kDeleted:
    case ResultCode::kNumber:
      return Status::kOk;
    case ResultCode::kMiss:
      return Status::kNotFound;
    case ResultCode::kExists:
      return Status::kExists;
    case ResultCode::kNotStored:
      if (kind == CommandKind::kAdd) return Status::kExists;
      return kind == CommandKind::kReplace ? Status::kNotFound : Status::kNotStored;
    case ResultCode::kTooLarge:
      return Status::kTooLarge;
    case ResultCode::kNonNumeric:
      return Status::kNonNumeric;
    case ResultCode::kOutOfMemory:
      return Status::kOutOfMemory;
    case ResultCode::kForbidden:
      return Status::kAuthError;
    case ResultCode::kSessionLost:
    case ResultCode::kTimedOut:
    case ResultCode::kNotSent:
      return Status::kTemporary;
    default:
      return Status::kInternal;
  }
}

char* write_flags_head(char* out, const Question& question, std::string_view key, const Result& result,
                       uint32_t value_length) {
  constexpr uint8_t kFlags = 4;
  const auto key_length = static_cast<uint16_t>(key.size());
  out = binary::write_head(out, {.opcode = question.opcode,
                                 .opaque = question.opaque,
                                 .key_length = key_length,
                                 .extras_length = kFlags,
                                 .body_length = kFlags + key_length + value_length,
                                 .cas = result.cas});
  return write_text(binary::write_big(out, result.client_flags), key);
}

char* write_binary(char* out, const Question& question, std::string_view key, const Result& result) {
  if (is_hushed(question, result.code)) return out;
  const Status status = status_of(question.kind, result.code);
  if (result.code == ResultCode::kHit) return write_flags_head(out, question, {}, result, 0);
  if (status == Status::kNotFound && question.kind == CommandKind::kGet && binary::wants_key(question.opcode)) {
    const auto key_length = static_cast<uint16_t>(key.size());
    out = binary::write_head(out, {.opcode = question.opcode,
                                   .opaque = question.opaque,
                                   .status = status,
                                   .key_length = key_length,
                                   .body_length = key_length});
    return write_text(out, key);
  }
  if (status != Status::kOk) return binary::write_status(out, question.opcode, question.opaque, status);
  const bool number = result.code == ResultCode::kNumber;
  out = binary::write_head(out, {.opcode = question.opcode,
                                 .opaque = question.opaque,
                                 .body_length = number ? uint32_t{sizeof result.number} : 0,
                                 .cas = result.cas});
  return number ? binary::write_big(out, result.number) : out;
}

}  // namespace

void ask(const Command& command, uint16_t options, Question& question) {
  question.kind = command.kind;
  question.dialect = command.dialect;
  question.noreply = command.noreply;
  question.quiet = command.quiet;
  question.options = options;
  if (command.dialect == Dialect::kClassic) return;
  question.opcode = command.opcode;
  question.opaque = command.opaque;
  question.value_length = command.value_length;
  question.cas = command.cas;
  if (command.dialect == Dialect::kMeta) question.echo.assign(command.echo);
}

bool has_value(const Question& question, const Result& result) {
  switch (question.dialect) {
    case Dialect::kClassic:
      return result.code == ResultCode::kHit && is_retrieval(question.kind);
    case Dialect::kBinary:
      return result.code == ResultCode::kHit && question.kind == CommandKind::kGet;
    case Dialect::kMeta:
      break;
  }
  if (question.kind == CommandKind::kMetaArith) {
    return result.code == ResultCode::kNumber && has_flag(question.echo, 'v');
  }
  if (result.code != ResultCode::kHit || (question.options & op::kNoValue) != 0) return false;
  const bool known = (question.options & op::kCompareCas) != 0 && result.cas == question.cas;
  return !known;
}

// Meta: each return flag takes a space, its letter and at most twenty digits; the key may appear twice.
size_t max_head(const Question& question, size_t key_length) {
  switch (question.dialect) {
    case Dialect::kClassic:
      return max_value_header(key_length);
    case Dialect::kBinary:
      return binary::kHead + 4 + key_length;
    case Dialect::kMeta:
      break;
  }
  return 128 + kMaxMetaWords * (kMaxDigits + 2) + 2 * question.echo.size() + key_length;
}

char* write_head(char* out, const Question& question, std::string_view key, const Result& result, uint32_t length) {
  switch (question.dialect) {
    case Dialect::kClassic:
      return write_value_header(out, key, result.client_flags, length,
                                (question.options & op::kWantCas) != 0 ? &result.cas : nullptr);
    case Dialect::kBinary:
      return write_flags_head(out, question, binary::wants_key(question.opcode) ? key : std::string_view{}, result,
                              length);
    case Dialect::kMeta:
      break;
  }
  out = write_digits(write_text(out, "VA "), length);
  return write_text(write_return_flags(out, question, result), kCrLf);
}

std::string_view tail(const Question& question) {
  return question.dialect == Dialect::kBinary ? std::string_view{} : kCrLf;
}

size_t max_answer(const Question& question, size_t key_length) {
  constexpr size_t kLongestLine = 128;
  return std::max({max_head(question, key_length) + kMaxDigits + 2, kLongestLine, binary::kMaxStatusPacket});
}

char* write_answer(char* out, const Question& question, std::string_view key, const Result& result) {
  switch (question.dialect) {
    case Dialect::kClassic:
      return write_classic(out, question, result);
    case Dialect::kMeta:
      return write_meta(out, question, key, result);
    case Dialect::kBinary:
      break;
  }
  return write_binary(out, question, key, result);
}

std::string_view retrieval_error(const Result& result) {
  if (result.code == ResultCode::kHit || result.code == ResultCode::kMiss) return {};
  const std::string_view line = failure_line(CommandKind::kGet, result.code);
  return line.empty() ? kBackendRefused : line;
}

size_t max_packet(std::string_view body) {
  return binary::kHead + body.size();
}

char* write_packet(char* out, const Question& question, Status status, std::string_view body) {
  out = binary::write_head(out, {.opcode = question.opcode,
                                 .opaque = question.opaque,
                                 .status = status,
                                 .body_length = static_cast<uint32_t>(body.size())});
  return write_text(out, body);
}

std::string stat_packets(const Question& question, std::string_view report) {
  std::string packets;
  const auto add = [&](std::string_view name, std::string_view value) {
    char head[binary::kHead];
    binary::write_head(head, {.opcode = question.opcode,
                              .opaque = question.opaque,
                              .key_length = static_cast<uint16_t>(name.size()),
                              .body_length = static_cast<uint32_t>(name.size() + value.size())});
    packets.append(head, sizeof head).append(name).append(value);
  };
  while (report.starts_with("STAT ")) {
    std::string_view line = report.substr(0, report.find(kCrLf));
    report.remove_prefix(std::min(line.size() + kCrLf.size(), report.size()));
    line.remove_prefix(5);
    const std::string_view name = line.substr(0, line.find(' '));
    add(name, line.substr(std::min(name.size() + 1, line.size())));
  }
  if (!report.empty()) add({}, {});
  return packets;
}

}  // namespace egret::memcache
