// From what the client said to the op vocabulary: a Command becomes an Op. The way back is answer.h.
#pragma once

#include <string_view>

#include "memcache/command.h"
#include "op/op.h"

namespace egret::memcache {

// Whether the command is answered by a store at all: not version, verbosity, stats and quit, which are the proxy's own
// affair.
bool needs_store(CommandKind kind);

// The op of a command that needs the store; for a retrieval, of the one key that `command` holds. The op's views are
// the command's. `hash` is left to the router. For a value that is streamed, set `value` (or make an upload of it)
// afterwards.
op::Op to_op(const Command& command);

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
  kExtstore,   // stats extstore: there is none to tell of
  kUnknown,    // `error` is the answer
};
struct StatsRequest {
  StatsTopic topic;
  std::string_view error;  // kUnknown: the line to send
};
StatsRequest stats_request(const Command& command);

}  // namespace egret::memcache
