// Which backend a key belongs to, and this worker's session with it. (Pools of several backends will choose by ketama
// here.) Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "rpc/client_session.h"

namespace egret::proxy {

// Where an op goes. `session` is null when the key's backend cannot be reached just now.
struct Target {
  rpc::ClientSession* session = nullptr;
  uint64_t hash = 0;
};

class Router {
 public:
  void add(std::unique_ptr<rpc::ClientSession> session) { sessions_.push_back(std::move(session)); }

  Target route(std::string_view key) const {
    rpc::ClientSession* session = sessions_.front().get();
    if (!session->is_open()) return {};
    return {session, session->hash(key)};
  }
  // Of all backends: for what concerns every one of them (flush_all, stats).
  const std::vector<std::unique_ptr<rpc::ClientSession>>& sessions() const { return sessions_; }

 private:
  std::vector<std::unique_ptr<rpc::ClientSession>> sessions_;
};

}  // namespace egret::proxy
