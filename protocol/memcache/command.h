// A parsed command, the same for all dialects. A parser fills it; translate.h turns it into an op; answer.h writes the
// answer.
//
// Its views point into the input given to the parser's next(), so they are valid as long as the caller keeps those
// bytes, or into the Command itself (a decoded base64 key, a formatted error). A caller that needs a key for longer
// (while a value is streamed) copies it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "op/op.h"

namespace egret::memcache {

// How the command was written; its answer has the same form.
enum class Dialect : uint8_t {
  kClassic,  // get, set, ...: lines
  kMeta,     // mg, ms, ...: lines
  kBinary,   // packets
};

enum class CommandKind : uint8_t {
  // Retrievals: one kKey event per key, then kEndOfKeys. In the binary dialect one kKey event and no kEndOfKeys.
  kGet,
  kGets,
  kGat,
  kGats,
  // Storage: with a value, whole or streamed.
  kSet,
  kAdd,
  kReplace,
  kAppend,
  kPrepend,
  kCas,
  kMetaSet,  // ms
  // One key, no value.
  kMetaGet,    // mg: a kKey event if the value is asked for, else kCommand
  kMetaDebug,  // me
  kMetaDelete,
  kMetaArith,
  kIncr,
  kDecr,
  kDelete,
  kTouch,
  // No key.
  kFlushAll,
  kVersion,
  kVerbosity,
  kStats,
  kAdmin,  // a command of admin.h; `echo` is the line
  kNoop,   // mn; binary: noop
  kSaslMechanisms,
  kSaslStart,  // key: the mechanism; value: the client's message
  kSaslStep,
  kAuthenticate,  // ASCII authentication. key: the user; value: the password
  kQuit,
};

constexpr bool is_retrieval(CommandKind kind) {
  return kind <= CommandKind::kGats;
}
constexpr bool is_storage(CommandKind kind) {
  return kind >= CommandKind::kSet && kind <= CommandKind::kMetaSet;
}

// A parser fills in only the fields of the command's kind and event; the others keep their old values.
struct Command {
  CommandKind kind = CommandKind::kQuit;
  Dialect dialect = Dialect::kClassic;
  bool noreply = false;        // the client wants no answer, and no error line either
  bool quiet = false;          // meta, binary: no answer to a get that misses, and to a change that succeeds
  bool terminator_ok = false;  // kValueEnd: whether "\r\n" followed the value; if not, answer kBadDataChunk
  uint8_t argument_count = 0;  // stats: words after the command word, at most kMaxArguments are kept
  uint32_t client_flags = 0;   // storage
  uint32_t value_length = 0;   // storage: bytes of the value, terminator not counted
  // Storage, gat, gats, touch; flush_all: the delay, 0 when none was given. As the client gave it.
  int64_t exptime = 0;
  uint64_t cas = 0;        // cas
  uint64_t delta = 0;      // incr, decr; verbosity: the level
  std::string_view key;    // kKey; storage, incr, decr, delete, touch: 1..250 bytes, any but space, NUL and newline
  std::string_view value;  // kCommand of a storage command: the value; kValuePart: this piece
  std::string_view error;  // kError, kClose: the line to send, "\r\n" included, static; of a kClose it may be empty

  static constexpr uint8_t kMaxArguments = 3;
  std::string_view arguments[kMaxArguments];  // stats: sub-command and its arguments

  // Meta and binary: further fields of the op.
  op::SetMode mode = op::SetMode::kSet;
  uint16_t options = 0;        // op::OpOptions
  int64_t vivify_exptime = 0;  // kVivify, kCreate
  int64_t recache_below = 0;   // kRecache
  uint64_t new_cas = 0;        // kExplicitCas
  uint64_t initial = 0;        // kCreate
  // Meta: key and flags as the client wrote them; the answer repeats some of them. Admin: the line.
  std::string_view echo;
  // Binary.
  uint8_t opcode = 0;
  uint32_t opaque = 0;  // in the packet's byte order

  static constexpr size_t kOwnBytes = 256;
  char own[kOwnBytes];  // memory for `key` or `error` when they are not in the input
};

// The command word, for logs.
const char* to_string(CommandKind kind);

}  // namespace egret::memcache
