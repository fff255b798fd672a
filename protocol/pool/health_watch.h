// Watches the members of a pool for the whole process: judges what workers see of them, probes those that are ejected,
// and publishes who is.
//
//   worker ─ a session lost, ops timed out ─ ring() ─▶ HealthWatch ─ judge ─▶ HealthState::set ─▶ workers take it
//                                                          ▲  └ ejected: probes ─▶ Errand ─ an answer from every ─┐
//                                                          │                              partition              │
//                                                          └── it is let in ◀─ each Readmission has succeeded ◀──┘
//
// Members may be held back, too: keys go to them as little as to ejected ones, but nobody judges or probes them for that.
//
// Thread: the control thread's, on its event loop; HealthState is for any thread. A timer is pending only while a member
// is ejected.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/options/live.h"
#include "base/unique_fd.h"
#include "events/event.h"
#include "pool/errand.h"
#include "pool/health_judge.h"

namespace egret::pool {

// What workers and the control thread share. Any thread.
class HealthState {
 public:
  // Throws std::system_error if the system has no descriptors left.
  HealthState();

  // A worker has seen a sign: the control thread looks soon.
  void ring();
  // Of the snapshot in force. A worker compares it in each pass.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::shared_ptr<const Health> get() const { return now_.get(); }

  // --- the control thread's part
  void set(Health health);
  int bell_fd() const { return bell_.get(); }  // readable after ring()
  void take_bell();

 private:
  base::UniqueFd bell_;
  base::Live<Health> now_;
  std::atomic<uint64_t> version_{0};
};

class HealthObserver {
 public:
  // HealthState has another snapshot: workers are to be woken.
  virtual void on_health() = 0;
  virtual void on_verdict(const Membership::Entry& member, const HealthJudge::Verdict& verdict) = 0;
  virtual void on_failed_probe(const Membership::Entry& member, const std::string& why) = 0;

 protected:
  ~HealthObserver() = default;
};

// What has to be done with an ejected member that has answered its probe, before keys go to it again. Its owner's
// thread: the control thread.
class Readmission {
 public:
  using Done = std::function<void(const base::Status&)>;

  // Calls `done` once, from the loop or within this call; who calls it must not own it any more, since a further step
  // may begin or the member may be forgotten. A failure counts as a probe that was not answered: the member stays
  // ejected, and all steps begin again after the next probe. `member` is valid during the call.
  virtual void begin(const Membership::Entry& member, Done done) = 0;
  // That member has left the pool while the step was under way: `done` must not be called any more.
  virtual void cancel(const MemberStats& member) = 0;

 protected:
  ~Readmission() = default;
};

// Says how ops on an ejected member's keys go.
class AbsenceSource {
 public:
  // Asked whenever a snapshot is made, of each ejected member; must not call the HealthWatch.
  virtual Absent absent(const MemberStats& member) = 0;
  // A bell was rung: workers may have taken another snapshot.
  virtual void look() = 0;

 protected:
  ~AbsenceSource() = default;
};

class HealthWatch {
 public:
  static constexpr size_t kMostProbes = 16;  // at a time, with their steps of readmission

  // `connect` is transport::connect, or a test's.
  HealthWatch(events::EventLoop& loop, const base::Clock& clock, HealthState& state, HealthObserver& observer,
              rpc::ClientSession::Connect connect = transport::connect);
  ~HealthWatch();

  // `session`: what probes have in common with workers' sessions.
  void set_options(const HealthOptions& options, const rpc::SessionOptions& session);
  void set_membership(std::shared_ptr<const Membership> membership);
  // At the start: steps are done in the order in which they were added. Outlives this object's members.
  void add_step(Readmission& step) { steps_.push_back(&step); }
  // Keys do not go to these, whether or not they are ejected; published at once. They may be members that are joining.
  void hold_back(std::vector<const MemberStats*> members);
  bool is_ejected(const MemberStats& member) const;
  // At the start. Without one, ops on ejected members' keys fail.
  void set_absences(AbsenceSource& absences) { absences_ = &absences; }
  // The source says something else now.
  void publish();

 private:
  class Probe;

  void on_bell();
  void look();
  void start_probes(uint64_t now_ns);
  void on_probe(const MemberStats* member, const base::Status& status);
  void tell(const std::vector<HealthJudge::Verdict>& verdicts, uint64_t now_ns);
  const Membership::Entry* entry_of(const MemberStats* member) const;

  events::EventLoop& loop_;
  const base::Clock& clock_;
  HealthState& state_;
  HealthObserver& observer_;
  const rpc::ClientSession::Connect connect_;
  rpc::SessionOptions session_;
  std::shared_ptr<const Membership> membership_ = std::make_shared<const Membership>();
  HealthJudge judge_;
  std::vector<Readmission*> steps_;
  std::vector<const MemberStats*> held_back_;
  AbsenceSource* absences_ = nullptr;
  std::map<const MemberStats*, std::unique_ptr<Probe>> probes_;  // under way
  events::Event bell_;
  events::Event look_;  // pending while a probe is waited for
};

}  // namespace egret::pool
