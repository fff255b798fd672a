// Turns a Command into an Op. answer.h turns the Result into bytes.
#pragma once

#include <string_view>

#include "memcache/command.h"
#include "op/op.h"

namespace egret::memcache {

// Whether a store answers the command. The proxy itself answers version, verbosity, stats and quit.
bool needs_store(CommandKind kind);

// The op of a command that needs the store; of a retrieval, for the present key. The op's views are the command's. The
// router fills in `hash`. For a streamed value the caller sets `value`, or uploads it.
op::Op to_op(const Command& command);

// The report that a `stats` command asks for. Unknown names answer kErrorLine.
enum class StatsTopic : uint8_t {
  kGeneral,    // stats
  kReset,      // stats reset: answers kResetLine
  kSettings,   // stats settings
  kEgret,      // stats egret: lanes and sessions
  kCheck,      // stats egret check: for tests; a backend without the checks answers kErrorLine
  kItems,      // stats items
  kSlabs,      // stats slabs
  kSizes,      // stats sizes
  kConns,      // stats conns
  kDetail,     // stats detail on|off|dump: arguments[1] says which
  kCachedump,  // stats cachedump <slab> <limit>
  kExtstore,   // stats extstore: not supported
  kUnknown,    // `error` is the answer
};
struct StatsRequest {
  StatsTopic topic;
  std::string_view error;  // kUnknown: the line to send
};
StatsRequest stats_request(const Command& command);

}  // namespace egret::memcache
