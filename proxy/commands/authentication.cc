#include "proxy/commands/authentication.h"

#include <strings.h>

#include "memcache/reply.h"
#include "proxy/commands/control.h"
#include "proxy/commands/credentials.h"

namespace egret::proxy {

using memcache::CommandKind;
using memcache::binary::Status;

namespace {

constexpr std::string_view kSaslMechanism = "PLAIN";
constexpr size_t kMaxSaslMechanism = 32;  // bytes of a mechanism's name that memcached reads
constexpr std::string_view kAuthenticated = "Authenticated";

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Outcome Authentication::ascii() {
  // A reload may have done away with the users that this client was to be one of.
  const Credentials* const users = client_.config->credentials.get();
  const bool known = judge(users == nullptr || users->know(client_.command.key, client_.command.value));
  client_.replies.push_text(known ? memcache::kStored : memcache::kAuthFailure);
  return Outcome::kDone;
}

Outcome Authentication::sasl() {
  answer_sasl();
  return Outcome::kDone;
}

// In one go, or (as some clients do) with an empty first message.
void Authentication::answer_sasl() {
  const memcache::Command& command = client_.command;
  const Credentials* const users = client_.config->credentials.get();
  if (users == nullptr && !client_.parser.must_authenticate()) return refuse(client_, Status::kUnknownCommand);
  if (command.kind == CommandKind::kSaslMechanisms) return answer_packet(client_, Status::kOk, kSaslMechanism);
  if (command.key.size() > kMaxSaslMechanism) return refuse(client_, Status::kInvalid);
  const bool starts = command.kind == CommandKind::kSaslStart;
  const bool is_plain = is_same_but_for_case(command.key, kSaslMechanism);
  if (starts) {
    sasl_started_ = is_plain && command.value.empty();
    if (sasl_started_) return answer_packet(client_, Status::kAuthContinue, {});
  }
  const bool may_go_on = is_plain && (starts || sasl_started_);
  if (judge(may_go_on && (users == nullptr || users->know_plain(command.value)))) {
    return answer_packet(client_, Status::kOk, kAuthenticated);
  }
  refuse(client_, Status::kAuthError);
}

bool Authentication::judge(bool known) {
  client_.worker.stats.auth_cmds.add(1);
  if (known) {
    client_.parser.set_authenticated();
  } else {
    client_.worker.stats.auth_errors.add(1);
  }
  return known;
}

}  // namespace egret::proxy
