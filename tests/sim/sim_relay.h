// A relay as an actor: a proxy's worker with one session with the backend, and inbound sessions of clients.
//
//   SimClient ─ shm ─▶ SimRelay ─ the network's flavour ─▶ Server
//
// Written after proxy/worker.cc and proxy/slots. Single-threaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "network.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"
#include "rpc/relay/relay.h"
#include "wire/handshake.h"

namespace egret::sim {

class World;

class SimRelay final : public rpc::SessionObserver {
 public:
  static constexpr uint64_t kMember = 77;
  static constexpr const char* kAddress = "shm:relay";
  static constexpr const char* kBackend = "backend";

  explicit SimRelay(World& world);
  ~SimRelay();

  void start() { session_.start(); }
  void step();
  bool is_asleep() const { return blocked_ && !has_reason_to_wake(); }
  rpc::ClientSession& session() { return session_; }
  rpc::relay::Relay& relay() { return relay_; }
  uint64_t next_tick_ns() const { return next_tick_ns_; }
  uint64_t sleeps() const { return sleeps_; }
  uint32_t lost() const { return lost_; }
  // Ends one of the inbound sessions, as if its client had died.
  void end_one(Rng& rng);
  size_t inbound() const { return sessions_.size(); }
  std::string describe();

  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession&) override;
  void on_session_active(rpc::ClientSession& session) override { active_.add(session); }
  void on_session_lost(rpc::ClientSession&, const std::string&, bool was_open) override { lost_ += was_open; }

 private:
  struct Session {
    uint64_t id = 0;
    bool is_open = false;
    bool is_waiting = false;  // for a session with the backend, to be granted
    wire::Hello hello;
    wire::Grant granted;  // of the outbound session, when this one was granted
    std::unique_ptr<transport::ServerEndpoint> endpoint;
  };

  bool has_reason_to_wake() const;
  bool is_tick_due() const;
  bool is_control_ready() const;
  void look_at_clients();
  bool read_control(Session& session);
  bool grant(Session& session);
  void grant_waiting();
  void end(uint64_t id);
  void run_passes();
  bool may_block();

  World& world_;
  const std::string address_;
  rpc::ActiveSessions active_;
  rpc::ClientSession session_;
  uint32_t next_upload_id_ = 1;
  std::vector<std::unique_ptr<Session>> sessions_;
  rpc::relay::Relay relay_;
  uint64_t next_id_ = 1;
  bool blocked_ = false;
  uint64_t next_tick_ns_ = 0;
  uint64_t sleeps_ = 0;
  uint32_t lost_ = 0;
};

}  // namespace egret::sim
