#include "client/engine/router.h"

#include "base/random.h"

namespace egret::client {

Router::Router(const Settings& settings, const base::Clock& clock, rpc::SessionObserver& observer,
               rpc::ClientSession::Connect connect)
    : placement_(settings.placement, settings.members) {
  for (const pool::Member& member : settings.members) {
    rpc::SessionOptions options = settings.session;
    options.address = member.address;
    options.worker_id = base::random_u64();
    sessions_.push_back(std::make_unique<rpc::ClientSession>(options, clock, observer, connect));
    by_member_.push_back(sessions_.back().get());
  }
}

}  // namespace egret::client
