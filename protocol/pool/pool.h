// Which backend of the pool a key belongs to, and this worker's session with it. Thread: the worker's.
//
//   key ─▶ KetamaRing ─▶ backend ─▶ session ─ open? ─▶ hash with that backend's seed ─▶ lane
//
// Ops on keys of a backend that cannot be reached fail; its keys are not moved to other backends. If they were moved,
// the backend would serve stale values when it comes back, and proxies that reach different backends (because one link
// is down) would read and write different copies of a key.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/ketama.h"
#include "rpc/client_session.h"

namespace egret::pool {

// Where an op goes. `session` is null when the key's backend cannot be reached just now.
struct Route {
  rpc::ClientSession* session = nullptr;
  uint64_t hash = 0;
};

class Pool {
 public:
  Pool() = default;
  explicit Pool(KetamaRing ring) : ring_(std::move(ring)) {}
  // Call it once for each server of the ring, in the ring's order.
  void add(std::unique_ptr<rpc::ClientSession> session) { sessions_.push_back(std::move(session)); }

  Route route(std::string_view key) const {
    rpc::ClientSession* session = sessions_[ring_.server_of(key)].get();
    if (!session->is_open()) return {};
    return {session, session->lanes().hash(key)};
  }
  // The sessions with all backends, for flush_all and stats.
  const std::vector<std::unique_ptr<rpc::ClientSession>>& sessions() const { return sessions_; }

 private:
  KetamaRing ring_;
  std::vector<std::unique_ptr<rpc::ClientSession>> sessions_;
};

}  // namespace egret::pool
