// Commands that the proxy answers by itself, and answers that are no op's result.
#pragma once

#include <string_view>

#include "memcache/binary.h"
#include "op/op.h"
#include "proxy/commands/client_context.h"

namespace egret::proxy {

Outcome answer_version(ClientContext& client);
Outcome answer_noop(ClientContext& client);

// A line of the text protocol, unless the command asked for none.
void answer_line(ClientContext& client, std::string_view line);
// Binary: a body that is no op's result, or the text of a status.
void answer_packet(ClientContext& client, memcache::binary::Status status, std::string_view body);
void refuse(ClientContext& client, memcache::binary::Status status);
// What `stats` says, in the client's dialect; another text than a report is an error.
void answer_report(ClientContext& client, std::string_view text);
// What is answered when backends failed a command that concerns all of them; empty for kOk.
std::string_view failure_line(op::ResultCode code);

}  // namespace egret::proxy
