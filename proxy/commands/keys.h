// Commands on one key: an op, its lane, a place for its answer.
//
//   command ─▶ Op ─ route ─▶ must it wait for an earlier answer on this key? ─▶ lane.append ─▶ Reply in the queue
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "op/op.h"
#include "pool/pool.h"
#include "proxy/commands/client_context.h"

namespace egret::proxy {

// A key of a retrieval.
Outcome get_key(ClientContext& client);
// The end of a classic retrieval's keys.
void end_keys(ClientContext& client);

// An op that is about to be sent: where it goes, and the op.
struct KeyOp {
  pool::Route route;
  op::Op op;
};
// The op of a command that changes its key. Nothing: `outcome` says what has become of the command instead.
std::optional<KeyOp> change_of(ClientContext& client, Outcome& outcome);
// Hands the op to its lane and its place to the queue; or neither.
Outcome append(ClientContext& client, const KeyOp& what, Reply* reply);
// A place for the command's answer; `options` are its op's.
Reply* new_reply(ClientContext& client, uint16_t options);
// The command is answered as if its op had this result.
void answer(ClientContext& client, op::ResultCode code);
// The request is over but for its answer.
void count_request(ClientContext& client);

}  // namespace egret::proxy
