// pool::HealthWatch of a simulated proxy: the production judge, probes in virtual time, and the snapshot that the proxy's
// worker takes when it finds that there is another.
//
//   worker ─ a session lost, ops timed out ─ ring() ─▶ step(): judge ─▶ published() ─▶ worker: Pool::take()
//                                                        ▲  └ ejected: a probe ─▶ SimErrand ─┐
//                                                        └── an answer of every partition ───┘
//
// Checks that at most the configured share of the members is ejected. Single-threaded; an actor of its own, since it
// stands for another thread than the worker's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pool/health_judge.h"
#include "pool/membership.h"
#include "sim_errand.h"
#include "sim_gutter.h"

namespace egret::sim {

class SimHealth final : private SimGutterObserver {
 public:
  SimHealth(PoolWorld& world, const std::string& proxy);
  ~SimHealth();

  void ring() { is_rung_ = true; }
  // The worker has taken the snapshot of that number; all that it had sent to the gutter by then has been answered.
  void on_taken(uint64_t version);
  void on_fenced(uint64_t version);
  // A session is open: who is about to return has one more.
  void on_opened() { gutter_.ring(); }
  // Is taken in the next step.
  void set_membership(std::shared_ptr<const pool::Membership> membership) { next_ = std::move(membership); }
  const std::shared_ptr<const pool::Health>& published() const { return published_; }

  void step();
  bool is_asleep() const;
  uint64_t next_tick_ns() const;
  void stop();
  std::string describe() const;

 private:
  class Probe;

  void take_membership();
  void look();
  void start_probes();
  void on_probe(const pool::MemberStats* member, bool has_answered);
  void tell(const std::vector<pool::HealthJudge::Verdict>& verdicts);
  void check_share(const pool::MemberStats* member);
  void publish();
  void on_absence() override { publish(); }
  bool has_taken() const override { return taken_ == published_->version(); }
  bool has_fenced() const override { return fenced_ == published_->version(); }
  const pool::Membership::Entry* entry_of(const pool::MemberStats* member) const;

  PoolWorld& world_;
  const std::string proxy_;
  std::shared_ptr<const pool::Membership> membership_ = std::make_shared<const pool::Membership>();
  std::shared_ptr<const pool::Membership> next_;  // null: as it is
  pool::HealthJudge judge_;
  SimGutter gutter_;
  uint64_t taken_ = 0, fenced_ = 0;  // by the worker
  std::map<const pool::MemberStats*, std::unique_ptr<Probe>> probes_;
  std::shared_ptr<const pool::Health> published_ = std::make_shared<const pool::Health>();
  bool is_rung_ = false;
};

}  // namespace egret::sim
