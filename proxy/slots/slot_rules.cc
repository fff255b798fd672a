#include "proxy/slots/slot_rules.h"

#include <utility>

#include "proxy/users/credentials.h"

namespace egret::proxy {

using base::Status;

namespace {

// An admin may do what concerns the whole server.
op::Rights rights_of(const User& user) {
  op::Rights rights = 0;
  if ((user.rights & kMayRead) != 0) rights |= op::kMayRead;
  if ((user.rights & kMayWrite) != 0) rights |= op::kMayWrite;
  if ((user.rights & kMayAdmin) != 0) rights |= op::kMayFlush | op::kMayDump | op::kMayLimits;
  return rights;
}

}  // namespace

base::Expected<std::shared_ptr<const rpc::relay::Rules>> slot_rules(const Config& config,
                                                                    const transport::PeerUser& user) {
  rpc::relay::Rules rules{.rights = op::kMayRead | op::kMayWrite | op::kMayFlush | op::kMayDump};
  if (config.credentials != nullptr) {
    const std::shared_ptr<const User> known = config.credentials->find_local(user.uid);
    if (known == nullptr) {
      return Status::error("this proxy asks for users, and none of its users_file has uid " + std::to_string(user.uid));
    }
    rules.rights = rights_of(*known);
    rules.prefixes = known->prefixes;
  }
  if (!config.allow_flush) rules.rights &= ~op::kMayFlush;
  if (!config.allow_dump) rules.rights &= ~op::kMayDump;
  return std::make_shared<const rpc::relay::Rules>(std::move(rules));
}

bool is_restricted(const Config& config) {
  return config.credentials != nullptr;
}

}  // namespace egret::proxy
