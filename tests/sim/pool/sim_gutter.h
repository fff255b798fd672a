// pool::GutterWatch of a simulated proxy: a production Failover for each owner, whose production dialogues travel by
// SimErrand. What it says of an absent owner becomes part of the snapshot that SimHealth publishes.
//
//   SimHealth::publish ─ absent() ─▶ Failover          worker ─ has taken, has fenced ─▶ step(): what is due is asked
//   a probe is answered ─ begin() ─▶ sessions, reading, purging ─ done ─▶ the owner is let in
//
// Single-threaded; steps are SimHealth's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "pool/gutter/dialogue.h"
#include "pool/gutter/failover.h"
#include "pool/membership.h"

namespace egret::sim {

class PoolWorld;

// What the proxy's worker has done with the snapshots, and who publishes them.
class SimGutterObserver {
 public:
  virtual void on_absence() = 0;
  virtual bool has_taken() const = 0;
  virtual bool has_fenced() const = 0;

 protected:
  ~SimGutterObserver() = default;
};

class SimGutter {
 public:
  using Done = std::function<void(bool is_purged)>;

  SimGutter(PoolWorld& world, const std::string& proxy, SimGutterObserver& observer);
  ~SimGutter();

  void set_membership(std::shared_ptr<const pool::Membership> membership);
  pool::Absent absent(const pool::MemberStats& member);
  void begin(const pool::MemberStats& member, Done done);
  void cancel(const pool::MemberStats& member);

  // The worker has done something.
  void ring() { is_rung_ = true; }
  void step();
  bool is_asleep() const;
  uint64_t next_tick_ns() const;
  void stop();

 private:
  class Talk;
  struct Standing;
  using Owner = const pool::MemberStats*;

  void advance(Owner owner, Standing& standing);
  bool move_on(Owner owner, Standing& standing);
  bool ask(Owner owner, Standing& standing);
  void talk(Standing& standing, Owner with, std::unique_ptr<pool::Dialogue> dialogue);
  void take_answer(Owner owner, Standing& standing, Owner with, pool::Dialogue& dialogue, bool is_ok);
  void finish(Standing& standing);
  void fail(Standing& standing);
  bool is_late(const Standing& standing) const;
  const pool::Membership::Entry* entry_of(const pool::MemberStats* member) const;

  PoolWorld& world_;
  const std::string proxy_;
  SimGutterObserver& observer_;
  std::shared_ptr<const pool::Membership> membership_ = std::make_shared<const pool::Membership>();
  std::map<Owner, std::unique_ptr<Standing>> standings_;
  bool is_rung_ = false;
  uint64_t next_look_ns_ = 0;
};

}  // namespace egret::sim
