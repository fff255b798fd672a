// A number of rpc sessions with one backend, as that many proxy workers would have them.
//
// Thread: the one that created it. Opening blocks; a session that is lost, refused or not open in time is an error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"

namespace egret::bench_rpc {

class Crowd final : private rpc::SessionObserver {
 public:
  // `address`: transport/address.h. `window`: slots per lane that each session asks for.
  Crowd(std::string address, uint32_t window, const base::Clock& clock);
  ~Crowd();

  // Called repeatedly while sessions are being opened; false: stop.
  using GoesOn = std::function<bool()>;
  // Opens or closes sessions until there are so many. Fails if no session opens within `patience_s`.
  base::Status resize(size_t sessions, double patience_s, const GoesOn& goes_on);
  size_t size() const { return sessions_.size(); }
  rpc::ClientSession& at(size_t index) { return *sessions_[index]; }
  // Where sessions that become active from now on are listed, by whoever makes passes over this list and no others.
  void list_active_in(rpc::ActiveSessions& list) { active_ = &list; }
  // Ok, or why one of them is no longer open.
  const base::Status& health() const { return lost_; }

 private:
  egret::base::Status on_session_connecting(rpc::ClientSession&) override { return egret::base::Status::ok(); }
  egret::base::Status on_session_open(rpc::ClientSession&) override { return egret::base::Status::ok(); }
  void on_session_active(rpc::ClientSession& session) override {
    if (active_ != nullptr) active_->add(session);
  }
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  base::Status wait_until_open(size_t first, double patience_s, const GoesOn& goes_on);

  const std::string address_;
  const uint32_t window_;
  const base::Clock& clock_;
  const uint64_t first_worker_id_;
  rpc::ActiveSessions* active_ = nullptr;
  std::vector<std::unique_ptr<rpc::ClientSession>> sessions_;
  std::string why_;    // why the last attempt failed
  base::Status lost_;  // why an open session was lost, or one was refused
};

}  // namespace egret::bench_rpc
