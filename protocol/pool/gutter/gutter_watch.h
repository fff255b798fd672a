// Has others stand in for absent owners, and purges these before they are let in, for the whole process: drives a
// Failover for each owner by errands.
//
//   HealthWatch::publish ─ absent() ─▶ Failover            workers ─ have taken, have fenced ─▶ look()
//   a probe is answered ─ begin() ─▶ sessions, reading, purging by Errand ─▶ done: the owner is let in
//
// It also has owners that are not absent looked at (looks.h), every few seconds.
//
// Thread: the control thread's, on its event loop. Without a gutter no timer is pending.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "events/event.h"
#include "pool/gutter/dialogue.h"
#include "pool/gutter/failover.h"
#include "pool/gutter/looks.h"
#include "pool/health_watch.h"

namespace egret::pool {

class GutterObserver : public LooksObserver {
 public:
  // absent() says something else of a member: another snapshot is to be published.
  virtual void on_absence() = 0;
  // Whether each worker has taken the snapshot in force; and whether everything that it had sent to the gutter until
  // then has been answered.
  virtual bool have_all_taken() const = 0;
  virtual bool have_all_fenced() const = 0;
  // The gutter takes the owner's keys from now on.
  virtual void on_stood_in(const Membership::Entry& owner) = 0;
  // The owner is purged and let in. `keys` were deleted on it, or all.
  virtual void on_cleared(const Membership::Entry& owner, uint64_t keys, bool is_flush) = 0;
  // A worker is to ask the gutter (Lister); and what was answered last, null: nothing yet.
  virtual void ask_gutter() = 0;
  virtual std::shared_ptr<const Listing> listing() const = 0;
  // That one of the gutter does not take them: it is asked again.
  virtual void on_not_entered(const Membership::Entry& gutter, const std::string& why) = 0;

 protected:
  ~GutterObserver() = default;
};

class GutterWatch final : public Readmission, public AbsenceSource {
 public:
  static constexpr uint64_t kEnterAgainNs = 500'000'000;
  static constexpr uint64_t kLookNs = 5'000'000'000;  // between two, made up to a fifth longer or shorter by chance

  GutterWatch(events::EventLoop& loop, const base::Clock& clock, GutterObserver& observer,
              rpc::ClientSession::Connect connect = transport::connect);
  ~GutterWatch();

  // `session`: what errands have in common with workers' sessions.
  void set_options(const rpc::SessionOptions& session);
  // Before keys go by these: whoever applies them finds that ops on absent owners' keys fail until the gutter is entered
  // anew.
  void set_membership(std::shared_ptr<const Membership> membership);
  // Workers may have taken another snapshot, have fenced, or have opened sessions.
  void look() override;

 private:
  class Talk;
  struct Standing;
  using Owner = const MemberStats*;

  Absent absent(const MemberStats& member) override;
  void begin(const Membership::Entry& member, Done done) override;
  void cancel(const MemberStats& member) override;

  bool step(Owner owner, Standing& standing);
  bool ask(Owner owner, Standing& standing);
  void advance(Owner owner, Standing& standing);
  void talk(Owner owner, Standing& standing, const MemberStats* with, std::unique_ptr<Dialogue> dialogue);
  void on_talk_over(Owner owner, const MemberStats* with, const base::Status& status);
  void take_answer(Owner owner, Standing& standing, const MemberStats* with, Dialogue& dialogue,
                   const base::Status& status);
  void finish(Owner owner, Standing& standing);
  void fail(Standing& standing, const std::string& why);
  bool is_late(Standing& standing) const;
  void wait();
  void begin_round();
  void take_listing();
  const Membership::Entry* entry_of(const MemberStats* member) const;
  bool is_owner(const MemberStats* member) const;

  events::EventLoop& loop_;
  const base::Clock& clock_;
  GutterObserver& observer_;
  const rpc::ClientSession::Connect connect_;
  rpc::SessionOptions session_;
  std::shared_ptr<const Membership> membership_ = std::make_shared<const Membership>();
  std::map<Owner, std::unique_ptr<Standing>> standings_;  // of all that have been absent since they are members
  Looks looks_;
  std::shared_ptr<const Listing> listing_;  // that was taken last
  events::Event look_;
  events::Event round_;
};

}  // namespace egret::pool
