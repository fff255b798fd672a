#include "proxy/commands/control.h"

#include <string>

#include "memcache/answer.h"
#include "memcache/reply.h"
#include "proxy/commands/keys.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

using memcache::binary::Status;
using op::ResultCode;

Outcome answer_version(ClientContext& client) {
  static const std::string line = "VERSION " + std::string(kMemcachedVersion) + "\r\n";
  if (client.parser.is_binary()) {
    answer_packet(client, Status::kOk, kMemcachedVersion);
  } else {
    client.replies.push_text(line);
  }
  return Outcome::kDone;
}

Outcome answer_noop(ClientContext& client) {
  if (client.parser.is_binary()) {
    answer(client, ResultCode::kOk);
  } else {
    client.replies.push_text(memcache::kMetaNoop);
  }
  return Outcome::kDone;
}

void answer_line(ClientContext& client, std::string_view line) {
  if (!client.command.noreply) client.replies.push_bytes(line);
}

void answer_packet(ClientContext& client, Status status, std::string_view body) {
  memcache::Question question;
  memcache::ask(client.command, 0, question);
  std::string packet(memcache::max_packet(body), '\0');
  memcache::write_packet(packet.data(), question, status, body);
  client.replies.push_bytes(packet);
}

void refuse(ClientContext& client, Status status) {
  answer_packet(client, status, memcache::binary::text_of(status));
}

void answer_report(ClientContext& client, std::string_view text) {
  if (!client.parser.is_binary()) return client.replies.push_bytes(text);
  const bool is_report = text.starts_with("STAT ") || text == memcache::kEnd;
  if (!is_report && text != memcache::kResetLine && text != memcache::kOk) {
    return refuse(client, text.starts_with("SERVER_ERROR") ? Status::kTemporary : Status::kNotFound);
  }
  memcache::Question question;
  memcache::ask(client.command, 0, question);
  client.replies.push_bytes(memcache::stat_packets(question, text));
}

std::string_view failure_line(ResultCode code) {
  if (code == ResultCode::kOk) return {};
  if (code == ResultCode::kForbidden) return memcache::kBackendForbids;
  return code == ResultCode::kTimedOut ? memcache::kBackendTimedOut : memcache::kBackendUnavailable;
}

}  // namespace egret::proxy
