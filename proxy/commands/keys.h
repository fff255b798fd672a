// Commands on one key: each becomes an op, which is appended to its lane, and a pending reply.
//
//   command ─▶ Op ─ route ─▶ must it wait for an earlier answer on this key? ─▶ lane.append ─▶ Reply in the queue
//                                             of the worker's own partition: rpc::execute, or rpc::gather
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "op/op.h"
#include "pool/pool.h"
#include "proxy/commands/client_context.h"

namespace egret::proxy {

// Handles one key of a retrieval.
Outcome get_key(ClientContext& client);
// Handles the end of a classic retrieval's keys.
void end_keys(ClientContext& client);

// An op with its route.
struct KeyOp {
  pool::Route route;
  op::Op op;
};
// The op of a command that changes its key. Nothing: the command is handled, or must wait; see `outcome`.
std::optional<KeyOp> change_of(ClientContext& client, Outcome& outcome);
// Appends the op to its lane and the reply to the queue; or, without credit, neither.
Outcome append(ClientContext& client, const KeyOp& what, Reply* reply);
// A pending reply for the command; `options` are its op's.
Reply* new_reply(ClientContext& client, uint16_t options);
// Answers the command as if its op had this result.
void answer(ClientContext& client, op::ResultCode code);
// Counts the present command as a request.
void count_request(ClientContext& client);

}  // namespace egret::proxy
