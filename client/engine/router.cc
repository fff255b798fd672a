#include "client/engine/router.h"

#include "base/random.h"
#include "client/process/libraries.h"
#include "transport/address.h"

namespace egret::client {

namespace {

// What the address needs is loaded with the first session of its kind.
base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_with_libraries(
    const std::string& address, const transport::ConnectOptions& options) {
  if (transport::transport_of(address) == "rdma") {
    if (base::Status loaded = need(Library::kVerbs); !loaded) return loaded;
  }
  return transport::connect(address, options);
}

}  // namespace

rpc::ClientSession::Connect default_connect() {
  return connect_with_libraries;
}

Router::Router(const Settings& settings, const base::Clock& clock, rpc::SessionObserver& observer,
               rpc::ClientSession::Connect connect)
    : placement_(settings.placement, settings.members) {
  for (const pool::Member& member : settings.members) {
    rpc::SessionOptions options = settings.session;
    options.address = member.address;
    options.worker_id = base::random_u64();
    options.is_embedded = true;
    // On this host a fetch is a load: whether to poll or to sleep is SpinJudge's to say, not whether a lane is slow.
    const bool is_auto = options.fetch.mode == rpc::FetchMode::kAuto;
    if (is_auto && transport::transport_of(member.address) == "shm") options.fetch.mode = rpc::FetchMode::kFetch;
    sessions_.push_back(std::make_unique<rpc::ClientSession>(options, clock, observer, connect));
  }
}

}  // namespace egret::client
