// The one in-memory form of what a client asks, whatever dialect it asked in. A parser fills it; translate.h turns it
// into an op, answer.h writes what is answered.
//
// A Command owns next to nothing: its views point into the input given to the parser's next(), so they live as long as
// the caller keeps those bytes, or into the Command itself (a key that came as base64, an error that had to be
// written). Who needs a key longer (a value that is streamed) copies it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "op/op.h"

namespace egret::memcache {

// How the command was written, and so how its answer is.
enum class Dialect : uint8_t {
  kClassic,  // get, set, ...: lines
  kMeta,     // mg, ms, ...: lines
  kBinary,   // packets
};

enum class CommandKind : uint8_t {
  // Retrievals: one kKey event a key, then kEndOfKeys. In the binary dialect one kKey event, and nothing after it.
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
  kAdmin,  // what admin.h knows: `echo` is the line
  kNoop,   // mn; binary: noop
  kSaslMechanisms,
  kSaslStart,  // key: the mechanism; value: what the client has to say
  kSaslStep,
  kAuthenticate,  // the fake set: key: the user; value: the password
  kQuit,
};

constexpr bool is_retrieval(CommandKind kind) {
  return kind <= CommandKind::kGats;
}
constexpr bool is_storage(CommandKind kind) {
  return kind >= CommandKind::kSet && kind <= CommandKind::kMetaSet;
}

// Fields that the kind (or the event it came with) does not name hold what was there before: a parser fills only what
// it must.
struct Command {
  CommandKind kind = CommandKind::kQuit;
  Dialect dialect = Dialect::kClassic;
  bool noreply = false;  // the client wants no answer; no error line either
  bool quiet = false;    // meta, binary: what is no news is not answered: a miss of a get, the success of a change
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

  // Meta and binary: what the op says besides the fields above.
  op::SetMode mode = op::SetMode::kSet;
  uint16_t options = 0;        // op::OpOptions
  int64_t vivify_exptime = 0;  // kVivify, kCreate
  int64_t recache_below = 0;   // kRecache
  uint64_t new_cas = 0;        // kExplicitCas
  uint64_t initial = 0;        // kCreate
  // Meta: the key as it was written, and after it the flags: the answer repeats some of it. Admin: the line.
  std::string_view echo;
  // Binary.
  uint8_t opcode = 0;
  uint32_t opaque = 0;  // as it came, never read as a number

  static constexpr size_t kOwnBytes = 256;
  char own[kOwnBytes];  // for what `key` and `error` view if it is not in the input
};

// The command word, for logs.
const char* to_string(CommandKind kind);

}  // namespace egret::memcache
