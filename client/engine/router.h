// Who the backends are, which of them a key belongs to, and a session with each.
//
// Thread: the client's. Owned by an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/config/settings.h"
#include "pool/placement.h"
#include "rpc/client_session.h"

namespace egret::client {

// transport::connect, which loads what it needs.
rpc::ClientSession::Connect default_connect();

class Router {
 public:
  Router(const Settings& settings, const base::Clock& clock, rpc::SessionObserver& observer,
         rpc::ClientSession::Connect connect);

  // The session of a key's backend, whatever its state is.
  rpc::ClientSession& session_of(std::string_view key) const { return *sessions_[placement_.member_of(key)]; }
  const std::vector<std::unique_ptr<rpc::ClientSession>>& sessions() const { return sessions_; }

 private:
  pool::Placement placement_;
  std::vector<std::unique_ptr<rpc::ClientSession>> sessions_;  // of members, in their order
};

}  // namespace egret::client
