#include "proxy/users/rights.h"

#include <algorithm>

#include "memcache/translate.h"

namespace egret::proxy {

using memcache::Command;
using memcache::CommandKind;
using memcache::StatsTopic;

namespace {

constexpr uint8_t kReadWrite = kMayRead | kMayWrite;

// Whether a meta get also changes the item.
uint8_t of_meta_get(const Command& command) {
  constexpr uint16_t kChanges = op::kTouch | op::kVivify | op::kRecache | op::kExplicitCas;
  return (command.options & kChanges) != 0 ? kReadWrite : uint8_t{kMayRead};
}

// Keys, addresses of clients, and what changes something.
uint8_t of_stats(const Command& command) {
  switch (memcache::stats_request(command).topic) {
    case StatsTopic::kDetail:
    case StatsTopic::kConns:
    case StatsTopic::kCachedump:
    case StatsTopic::kReset:
    case StatsTopic::kCheck:
      return kMayAdmin;
    default:
      return 0;
  }
}

bool has_key(CommandKind kind) {
  return kind <= CommandKind::kTouch;
}

}  // namespace

bool User::may_use_key(std::string_view key) const {
  if (prefixes.empty()) return true;
  return std::ranges::any_of(prefixes, [key](const std::string& prefix) { return key.starts_with(prefix); });
}

uint8_t rights_needed(const Command& command) {
  switch (command.kind) {
    case CommandKind::kGet:
    case CommandKind::kGets:
    case CommandKind::kMetaDebug:
      return kMayRead;
    case CommandKind::kMetaGet:
      return of_meta_get(command);
    // They tell the value, and change the item.
    case CommandKind::kGat:
    case CommandKind::kGats:
    case CommandKind::kMetaArith:
    case CommandKind::kIncr:
    case CommandKind::kDecr:
      return kReadWrite;
    case CommandKind::kSet:
    case CommandKind::kAdd:
    case CommandKind::kReplace:
    case CommandKind::kAppend:
    case CommandKind::kPrepend:
    case CommandKind::kCas:
    case CommandKind::kMetaSet:
    case CommandKind::kMetaDelete:
    case CommandKind::kDelete:
    case CommandKind::kTouch:
      return kMayWrite;
    case CommandKind::kFlushAll:
    case CommandKind::kVerbosity:
      return kMayAdmin;
    case CommandKind::kAdmin:  // `config get cluster` is for every client
      return command.echo.starts_with("config ") ? 0 : uint8_t{kMayAdmin};
    case CommandKind::kStats:
      return of_stats(command);
    case CommandKind::kVersion:
    case CommandKind::kNoop:
    case CommandKind::kSaslMechanisms:
    case CommandKind::kSaslStart:
    case CommandKind::kSaslStep:
    case CommandKind::kAuthenticate:
    case CommandKind::kQuit:
      return 0;
  }
  return kEveryRight;
}

bool permits(const User& user, const Command& command) {
  const uint8_t needed = rights_needed(command);
  if ((user.rights & needed) != needed) return false;
  return !has_key(command.kind) || user.may_use_key(command.key);
}

}  // namespace egret::proxy
