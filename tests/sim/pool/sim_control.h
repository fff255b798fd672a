// The control thread of a simulated proxy, after proxy/pool_control.cc: the production HealthWatch, Teller, GutterWatch and
// WarmTelling over an event loop of the simulation (sim_events.h), and when keys go by the next members.
//
//   change() ─▶ joining: workers open sessions ─ all have, or their time is over ─▶ members are told of the change ─▶ ... that
//   it is warm ─▶ membership: workers apply it ─ all are fenced ─▶ values move with their keys, for a while
//
// Checks that at most the configured share of the members is ejected. Single-threaded; an actor of its own, since it
// stands for another thread than the workers'.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pool/change/teller.h"
#include "pool/gutter/gutter_watch.h"
#include "pool/warm/warm_telling.h"
#include "sim_events.h"
#include "sim_worker.h"

namespace egret::sim {

class PoolWorld;

class SimControl final : private pool::HealthObserver,
                         private pool::GutterObserver,
                         private pool::WarmTellingOwner,
                         private pool::TellerObserver {
 public:
  SimControl(PoolWorld& world, ProxyState& state, const std::string& proxy,
             const std::vector<std::unique_ptr<SimWorker>>& workers);
  ~SimControl();

  // At the start, before there are workers.
  void begin(const std::vector<pool::Member>& members, const std::vector<pool::Member>& gutter);
  // These are to be the members.
  void change(const std::vector<pool::Member>& members, const std::vector<pool::Member>& gutter);
  bool is_changing() const { return phase_ != Phase::kNone; }

  void step();
  bool is_asleep() const { return !is_ready(loop_); }
  uint64_t next_tick_ns() const { return next_timer_ns(loop_); }

 private:
  enum class Phase : uint8_t { kNone, kOpening, kTelling };

  static base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                            const transport::ConnectOptions& options);
  rpc::SessionOptions session_options() const;
  void check_kept() const;
  void open();
  void look();
  void finish();
  void begin_warm_phase();
  void look_at_warm_phase();
  void set_warm_phase(const pool::WarmPhase& phase);

  void on_health() override {}  // workers find it in their next turn
  void on_verdict(const pool::Membership::Entry& member, const pool::HealthJudge::Verdict& verdict) override;
  void on_failed_probe(const pool::Membership::Entry& member, const std::string& why) override;
  void on_absence() override { health_.publish(); }
  bool have_all_taken() const override;
  bool have_all_fenced() const override;
  void on_stood_in(const pool::Membership::Entry& owner) override;
  void on_cleared(const pool::Membership::Entry& owner, uint64_t keys, bool is_flush) override;
  void ask_gutter() override;
  std::shared_ptr<const pool::Listing> listing() const override { return state_.listing; }
  void on_not_entered(const pool::Membership::Entry&, const std::string&) override {}
  void on_looked(const pool::Membership::Entry& owner, uint64_t keys, bool is_flush) override;
  void on_warm_told(size_t, size_t) override { finish(); }
  void on_told() override;
  void on_held_back(const pool::Member& member, const std::string& why) override;
  void on_let_in(const pool::Member& member) override;
  void on_not_told(const pool::Member& member, const std::string& why) override;
  void check_share(const pool::MemberStats* member);
  void trace(const std::string& line) const;

  PoolWorld& world_;
  ProxyState& state_;
  const std::string proxy_;
  const std::vector<std::unique_ptr<SimWorker>>& workers_;
  events::EventLoop loop_;
  pool::ChangeCounters changes_;
  pool::Teller teller_;
  pool::GutterWatch failover_;
  pool::HealthWatch health_;  // calls those two until its end
  pool::WarmTelling warm_telling_;
  Phase phase_ = Phase::kNone;
  std::shared_ptr<const pool::Membership> next_;  // from kTelling on
  events::Event look_;
  uint64_t deadline_ns_ = 0;
  uint64_t warm_told_ = 0;
  events::Event look_at_warm_;
  uint64_t warm_until_ns_ = 0;
};

}  // namespace egret::sim
