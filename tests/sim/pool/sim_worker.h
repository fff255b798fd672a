// One worker of a simulated proxy: the loop of proxy/worker.cc around a pool::Pool, and its clients' connections, whose
// requests are answered in order.
//
//   ProxyState ─ reload(), another Health ─▶ the next turn: prepare(), apply(), take() ─ taken, fenced ─▶ SimControl
//
// Single-threaded. Deterministic: all choices are the world's Rng's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "history.h"
#include "pool/fan_out.h"
#include "pool/gutter/lister.h"
#include "pool/health_watch.h"
#include "pool/pool.h"
#include "pool/warm/fence.h"
#include "pool/warm/phase.h"
#include "pool/warm/pulls.h"
#include "rng.h"
#include "rpc/active/active_sessions.h"
#include "rpc/large/large_get.h"
#include "rpc/large/large_set.h"

namespace egret::sim {

class PoolWorld;
class SimWorker;

// What the workers of a proxy and its control thread share, as proxy::ProxyState.
struct ProxyState {
  std::shared_ptr<const pool::Membership> joining = std::make_shared<const pool::Membership>();
  std::shared_ptr<const pool::Membership> membership = joining;  // by which keys go
  pool::HealthState health;
  std::shared_ptr<const pool::WarmPhase> warm = std::make_shared<const pool::WarmPhase>();
  std::shared_ptr<const pool::Listing> listing;  // of the gutter; null: none yet
};

// Memory for large values that are brought, refused now and then.
class SimPullMemory final : public pool::PullMemory {
 public:
  explicit SimPullMemory(Rng& rng) : rng_(rng) {}
  bool take(uint64_t) override { return !rng_.percent(10); }
  void give(uint64_t) override {}

 private:
  Rng& rng_;
};

// A client's connection: a pipeline of requests.
class Connection final : private rpc::CreditWaiter, private pool::PullWaiter {
 public:
  Connection(SimWorker& worker, uint32_t number);
  ~Connection();

  void ask_more(uint32_t requests) { left_ += requests; }
  // Has nothing more to ask and no request without an answer.
  bool is_finished() const { return left_ == 0 && draft_ == nullptr && upload_ == nullptr && unanswered_ == 0; }
  // Whether a turn could do something without an answer or credit coming first.
  bool can_go_on() const;
  // Its socket is readable: starts as many requests as it may.
  void on_readable();
  // An answer came.
  void resume();
  // A request that was sent there has no answer.
  bool waits_for(const rpc::ClientSession& session) const;
  // Before the sessions go: nothing is started any more.
  void stop();
  std::string describe() const;

 private:
  struct Pending;

  void go_on();
  std::unique_ptr<Pending> draw();
  bool start();
  bool start_flush();
  bool must_wait(const Request& request) const;
  void begin_upload(rpc::ClientSession& session, uint64_t hash);
  bool go_on_upload();
  bool commit();
  bool wait_for_credit(rpc::ClientSession& session);
  bool wait_for_credit(rpc::CreditQueue& queue);
  Pending& take_draft();
  void fail_unsent(Pending& pending);
  void on_answer(Pending& pending, const op::Result& result, bool restarted);
  void on_credit() override;
  bool on_pulled(bool may_be_there) override;
  bool waits_for_pull(const pool::Route& route);
  void list_for_resume();

  SimWorker& worker_;
  const uint32_t number_;
  uint32_t left_ = 0;  // requests that the client is still to send, and of them those that are here
  uint32_t here_ = 0;
  std::unique_ptr<Pending> draft_;                // the next request, not started
  std::deque<std::unique_ptr<Pending>> pending_;  // all that were started: a late answer finds its request
  size_t first_unanswered_ = 0;                   // of pending_
  uint32_t unanswered_ = 0;
  bool waits_for_credit_ = false;
  bool waits_for_pull_ = false;
  bool is_pulled_ = false;  // for the draft
  bool flushing_ = false;
  bool stopped_ = false;
  bool going_on_ = false;
  // The upload under way, whose request is draft_.
  rpc::LargeSet* upload_ = nullptr;
  std::string upload_value_;
  size_t upload_came_ = 0, upload_sent_ = 0;  // bytes that the client has sent, and that were passed on
  bool upload_entered_ = false, upload_collected_ = false;
};

class SimWorker final : public rpc::SessionObserver {
 public:
  // `proxy`: its name and number.
  SimWorker(PoolWorld& world, ProxyState& state, std::string proxy, uint32_t proxy_number, uint32_t number);
  ~SimWorker();

  // There are other members, or the warm phase has changed.
  void reload() { inbox_ = true; }
  void ask_gutter() { wants_listing_ = true; }
  bool is_prepared(uint64_t applied, uint64_t joining) const {
    return pool_.membership().version() == applied && prepared_ == joining;
  }
  uint64_t fenced_version() const { return fenced_version_; }
  uint64_t taken_health() const { return taken_health_; }
  uint64_t fenced_health() const { return fenced_health_; }
  // Keys go by the newest members, nobody is absent, and sessions with all of them are open.
  bool is_settled() const;

  void step();
  bool is_asleep() const;
  uint64_t next_tick_ns() const;
  void stop();
  void set_op_timeout(uint64_t ns);

  pool::Pool& pool() { return pool_; }
  const std::string& name() const { return name_; }
  uint32_t proxy_number() const { return proxy_number_; }
  std::string describe() const;

  std::vector<std::unique_ptr<Connection>> connections;

 private:
  friend class Connection;

  // What is known of a session object.
  struct Known {
    std::string address;
    uint64_t serial = 0;
    uint32_t backend = 0;
    uint64_t places = 0;  // ops appended
  };
  static uint64_t session_id(const Known& known, uint64_t generation) { return known.serial * 100'000 + generation; }

  std::unique_ptr<rpc::ClientSession> make_session(const pool::Membership::Entry& entry);
  void read_inbox();
  void take_membership();
  void take_warm_phase(bool is_applied);
  void tell_if_fenced();
  void tell_if_prepared();
  using SessionsOf = std::map<const pool::MemberStats*, const rpc::ClientSession*>;
  void check_members(const SessionsOf& before);
  pool::Route route(const std::string& key);
  bool needs_tick() const;
  bool is_tick_due() const;
  bool has_answers() const;
  bool has_data(const rpc::ClientSession& session) const;
  bool is_control_ready(const rpc::ClientSession& session) const;
  bool has_reason_to_wake() const;
  void run_passes();
  bool resume_connections();
  bool may_block();
  void let_leave();
  bool is_health_new() const;
  void take_health();
  void note_health();
  void note_answers();
  void note_fence();
  void check_ejected();

  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession& session) override;
  void on_session_active(rpc::ClientSession& session) override { active_.add(session); }
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  void on_session_timeout(rpc::ClientSession&) override { state_.health.ring(); }

  PoolWorld& world_;
  ProxyState& state_;
  const std::string proxy_;  // as in the addresses of its sessions
  const uint32_t proxy_number_;
  const uint32_t number_;
  const std::string name_;
  std::map<const rpc::ClientSession*, Known> known_;
  pool::Pool pool_;
  rpc::ActiveSessions active_;  // of the pool's
  uint32_t next_upload_ = 1;
  pool::PullCounters pull_counters_;
  SimPullMemory pull_memory_;
  pool::Pulls pulls_;
  rpc::SessionOptions options_;
  std::vector<Connection*> resumable_;
  pool::Fence gutter_fence_;
  pool::Lister lister_;
  bool is_fencing_ = false, is_warm_fencing_ = false, is_listing_ = false, wants_listing_ = false;
  uint64_t prepared_ = 0, fenced_version_ = 0;  // of memberships
  uint64_t taken_health_ = 0, fenced_health_ = 0;
  bool inbox_ = true;  // it begins with the members that there are
  bool blocked_ = false;
  bool stopped_ = false;
  uint64_t next_tick_ns_ = 0;
};

}  // namespace egret::sim
