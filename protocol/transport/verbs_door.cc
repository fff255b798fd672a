#include "transport/verbs_door.h"

namespace egret::transport::verbs {

namespace {

bool is_known(const ConnectData& request) {
  return request.magic == ConnectData::kMagic && request.version == ConnectData{}.version;
}

bool is_awaited(const ConnectData& request, const std::string& peer_group, const JoinableSession& named) {
  return named.peer_group == peer_group && request.index == named.joined && request.index < named.promised;
}

}  // namespace

ConnectAnswer answer_to(const ConnectData& request, const std::string& peer_group, const JoinableSession* named,
                        Doorkeeper* doorkeeper) {
  const bool is_further = is_known(request) && request.index > 0;
  if (is_further && request.token != 0 && named != nullptr && is_awaited(request, peer_group, *named)) {
    if (doorkeeper != nullptr) doorkeeper->charge(peer_group);
    return ConnectAnswer::kJoins;
  }
  if (doorkeeper != nullptr && !doorkeeper->lets_in(peer_group)) return ConnectAnswer::kTurnedAway;
  if (!is_known(request)) return ConnectAnswer::kOtherProtocol;
  if (!is_further) return ConnectAnswer::kMakesSession;
  return request.token == 0 ? ConnectAnswer::kToldNothing : ConnectAnswer::kNotItsOwn;
}

// A client that cannot be told is let in.
uint32_t come_back_ms(const ConnectData& request, const std::string& peer_group, Doorkeeper* doorkeeper) {
  if (doorkeeper == nullptr || (request.flags & kComesBack) == 0) return 0;
  return doorkeeper->come_back_ms(peer_group, (request.flags & kCameBack) != 0);
}

}  // namespace egret::transport::verbs
