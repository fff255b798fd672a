// Commands that the proxy answers itself, and answers that are not the result of an op.
#pragma once

#include <string_view>

#include "memcache/binary/binary.h"
#include "op/op.h"
#include "proxy/commands/client_context.h"

namespace egret::proxy {

Outcome answer_version(ClientContext& client);
Outcome answer_noop(ClientContext& client);

// Answers by a line of the text protocol, unless the command wants no answer.
void answer_line(ClientContext& client, std::string_view line);
// Binary: answers by a packet with that body, or with the text of the status.
void answer_packet(ClientContext& client, memcache::binary::Status status, std::string_view body);
void refuse(ClientContext& client, memcache::binary::Status status);
// Answers a `stats` command in the client's dialect. A text that is not a report is an error line.
void answer_report(ClientContext& client, std::string_view text);
// The error line if a backend failed a command for all backends; empty for kOk.
std::string_view failure_line(op::ResultCode code);

}  // namespace egret::proxy
