// The connections of a backend, and the sessions that become of them. A session is granted, and its memory freed, only when
// every partition has let go of the worker's previous session.
//
//   arrive ─ hello ─▶ [challenge, proof] ─▶ [the worker's old session closes; queue pairs join] ─ memory ─▶ grant: open
//   open ─ the peer is gone, or has broken the protocol ─▶ closing ─ all partitions have let go ─▶ destroyed
//
// Queue pairs and memory are made, and destroyed, by other threads (setup/), for many sessions at a time; this one
// decides, and talks. Listeners ask it, as their doorkeeper, whom to let in.
//
// With a secret (option secret_file), nothing is allocated for a peer, no partition hears of it and no other session is
// closed for it before it has proved that it holds the secret.
//
// Thread: the control thread's; its loop calls back.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "access/admission.h"
#include "access/handshake_rate.h"
#include "access/ledger.h"
#include "access/newcomers.h"
#include "backend/config.h"
#include "backend/mailbox.h"
#include "backend/report/metrics.h"
#include "backend/sessions/grant.h"
#include "backend/sessions/reason_limits.h"
#include "backend/sessions/session.h"
#include "base/clock.h"
#include "events/event.h"
#include "setup/setup_threads.h"
#include "transport/transport.h"

namespace egret::backend {

class Sessions final : public transport::Doorkeeper {
 public:
  // The control thread, as its sessions see it.
  class Host {
   public:
    virtual void post(uint32_t partition, const Message& message) = 0;
    virtual void on_room() = 0;       // after is_full(): connections may be accepted again
    virtual void on_forgotten() = 0;  // a session is gone; its peer may still have its memory

   protected:
    ~Host() = default;
  };

  // `config`: the configuration in force, whose values change with a reload. All outlive this object.
  Sessions(events::EventLoop& loop, const Config& config, const Identity& identity, Host& host);
  ~Sessions();

  base::Status begin();
  // After `config` has changed. Open sessions keep what they were granted.
  void reload();
  // A connection that a listener has accepted. `begun_ns`: when accepting it began.
  void arrive(std::unique_ptr<transport::ServerEndpoint> endpoint, uint64_t begun_ns);
  // So many wait for set-up threads that no connection should be accepted until on_room().
  bool is_full() const;
  // No connection should be accepted for now: access::should_wait().
  bool is_crowded() const;
  // A partition says that a session can go on no more (kBroken, kGone, kUnwatched); that it has let go of one.
  void on_ended(const Message& message);
  void on_detached(uint64_t session_id);
  // What concerns connections and sessions; the rest is 0.
  ControlFigures figures() const;

  bool lets_in(const std::string& peer_group) override;
  void charge(const std::string& peer_group) override;
  uint32_t come_back_ms(const std::string& peer_group, bool came_back) override;
  bool asks_for_proof() const override { return !config_.secrets.empty(); }

 private:
  friend struct Session;  // whose events call back

  // Newcomers
  uint32_t pause_for(const std::string& peer_group, bool came_back, uint64_t own_id);
  std::vector<access::Newcomer> silent_newcomers() const;
  void limit_newcomers();
  void sweep_silent();
  // Work that set-up threads do
  size_t in_setup() const { return setup_.waiting(SetupThreads::Kind::kMake); }
  void give_to_setup(Session& session, SetupThreads::Work work);
  void on_setup_done();
  void on_prepared(Session& session, const base::Status& prepared);
  void on_made(Session& session, const base::Status& made);
  // The handshake
  void on_control_ready(Session& session);
  void take_frames(Session& session);
  void read_on(Session& session);
  void read_on_later(Session& session, std::chrono::milliseconds pause);
  void on_frame(Session& session, std::span<const std::byte> frame);
  void on_hello(Session& session, std::span<const std::byte> frame);
  void on_proof(Session& session, std::span<const std::byte> frame);
  void on_nothing_to_read(Session& session);
  void admit(Session& session);
  void grant_when_ready(Session& session);
  void make(Session& session);
  bool take_lane_rings(const Session& session);
  base::Status send_grant(Session& session);
  // An open session
  void held_sessions_changed(const Session& session);
  uint32_t home_of(const Session& session) const;
  void attach(const Session& session);
  // Its end
  void refuse(Session& session, const std::string& reason);
  void turn_away(Session& session, const wire::Refusal& refusal);
  void close(Session& session, const std::string& why);
  void discard(Session& session);
  void destroy(Session& session);
  void forget(uint64_t session_id);

  events::EventLoop& loop_;
  const Config& config_;
  const Identity identity_;
  Host& host_;
  const base::SystemClock clock_;
  access::HandshakeRate handshake_rate_;
  access::Admission admission_;
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;
  access::Ledger ledger_;  // of the same sessions
  uint64_t next_session_ = 1;
  ReasonLimits refusals_logged_{1};
  ReasonLimits endings_logged_{5};  // of connections that had not become sessions
  ControlFigures counted_;          // only its counters of sessions are used
  events::Event sweep_;
  SetupThreads setup_;        // ends before what it works on
  events::Event setup_done_;  // ends before setup_ closes its descriptor
};

}  // namespace egret::backend
