// Between what the client said and the op vocabulary, both ways: a Command becomes an Op, a Result becomes a line.
#pragma once

#include <string_view>

#include "memcache/command.h"
#include "memcache/reply.h"
#include "op/op.h"

namespace egret::memcache {

// Whether the command is answered by a store at all: not version, verbosity, stats and quit, which are the proxy's own
// affair.
bool needs_store(CommandKind kind);

// The op of a command that needs the store; for a retrieval, of the one key that `command` holds. The op's views are
// the command's. `hash` is left to the router. For a value that is streamed, set `value` (or make an upload of it)
// afterwards.
op::Op to_op(const Command& command);

// The whole answer to a command that needs the store and is no retrieval. Empty if the client wants none (noreply). The
// line is static, or lies in `scratch`.
struct ReplyScratch {
  char bytes[kMaxNumberLine];
};
std::string_view reply_line(CommandKind kind, bool noreply, const op::Result& result, ReplyScratch& scratch);

// What a retrieval answers for a result that is neither hit nor miss: one line in the place of everything, END
// included. Empty for a hit and for a miss.
std::string_view retrieval_error(const op::Result& result);

// What a `stats` command asks for. Names that are neither memcached's nor kEgret's answer kErrorLine.
enum class StatsTopic : uint8_t {
  kGeneral,    // stats
  kReset,      // stats reset: answers kResetLine
  kSettings,   // stats settings
  kEgret,      // stats egret: no name of memcached's, but of the server that stands in for it
  kCheck,      // stats egret check: for tests; a backend that is no checked build answers kErrorLine
  kItems,      // stats items
  kSlabs,      // stats slabs
  kSizes,      // stats sizes
  kConns,      // stats conns
  kDetail,     // stats detail on|off|dump: arguments[1] says which
  kCachedump,  // stats cachedump <slab> <limit>
  kUnknown,    // `error` is the answer
};
struct StatsRequest {
  StatsTopic topic;
  std::string_view error;  // kUnknown: the line to send
};
StatsRequest stats_request(const Command& command);

}  // namespace egret::memcache
