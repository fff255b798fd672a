// The one in-memory form of what a client asks, whatever dialect it asked in (the text commands now; the meta and the
// binary ones will fill the same struct). A parser fills it; translate.h turns it into an op.
//
// A Command owns nothing: its views point into the input given to the parser's next(), so they live as long as the
// caller keeps those bytes. Who needs a key longer (a value that is streamed) copies it.
#pragma once

#include <cstdint>
#include <string_view>

namespace egret::memcache {

enum class CommandKind : uint8_t {
  // Retrievals: one kKey event a key, then kEndOfKeys.
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
  // One key, no value.
  kIncr,
  kDecr,
  kDelete,
  kTouch,
  // No key.
  kFlushAll,
  kVersion,
  kVerbosity,
  kStats,
  kQuit,
};

constexpr bool is_retrieval(CommandKind kind) {
  return kind <= CommandKind::kGats;
}
constexpr bool is_storage(CommandKind kind) {
  return kind >= CommandKind::kSet && kind <= CommandKind::kCas;
}

// Fields that the kind (or the event it came with) does not name hold what was there before: a parser fills only what
// it must.
struct Command {
  CommandKind kind = CommandKind::kQuit;
  bool noreply = false;        // the client wants no answer; no error line either
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
};

// The command word, for logs.
const char* to_string(CommandKind kind);

}  // namespace egret::memcache
