// Tells members of changes (telling.h), by an Errand with each: before keys go by the next members, so that nobody serves
// what it still holds of keys that moved away and come back to it.
//
//   tell(next) ─▶ Debt of each member before and next ─ a few Errands at a time ─▶ all told, or given up ─▶ on_told()
//                    ▲ who could not be reached stays owed                             put_in_force(next) ◀─┘
//                    └─ held back (HealthWatch) until it is told: after a while, or when its probe is answered
//
// A backend that answers is waited for, up to kMostWorkNs; one that does not, for kPatienceNs. Members that have left are
// owed what they were not told until they join again.
//
// Thread: the control thread's, on its event loop. Timers are pending only while somebody is owed a change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pool/change/debts.h"
#include "pool/errand.h"
#include "pool/health_watch.h"

namespace egret::pool {

// Any thread reads.
struct ChangeCounters {
  base::Counter told;      // members that were told of changes
  base::Counter not_told;  // and those that belong to others, cannot be told, or did not finish
  base::Gauge owed;        // members that are to be told
};

class TellerObserver {
 public:
  // Everybody whom the change concerns has been told, or is owed it. From the loop.
  virtual void on_told() = 0;
  // It is in force, and not told: it is held back.
  virtual void on_held_back(const Member& member, const std::string& why) = 0;
  virtual void on_let_in(const Member& member) = 0;
  // It is not asked again: nothing is removed.
  virtual void on_not_told(const Member& member, const std::string& why) = 0;

 protected:
  ~TellerObserver() = default;
};

class Teller final : public Readmission {
 public:
  static constexpr size_t kMostErrands = 64;               // at a time, apart from those of probes
  static constexpr uint64_t kPatienceNs = 2'000'000'000;   // with one that does not answer
  static constexpr uint64_t kMostWorkNs = 60'000'000'000;  // of one that answers
  static constexpr uint64_t kRetryNs = 250'000'000;
  static constexpr size_t kMostAbsent = 64;  // members that have left, and are owed something

  // It is to be the first of the watch's steps, and to outlive the watch, which it calls from set_options() on.
  Teller(events::EventLoop& loop, const base::Clock& clock, HealthWatch& watch, ChangeCounters& counters,
         TellerObserver& observer, rpc::ClientSession::Connect connect = transport::connect);
  ~Teller();

  // `session`: what its errands have in common with workers' sessions. `is_on`: false: nobody is told anything.
  void set_options(bool is_on, const rpc::SessionOptions& session, uint64_t patience_ns = kPatienceNs);
  // Remembers these as possible next members. If they share a member with the pool so far, all of them count as its members
  // until the next tell(). Returns whether they do.
  bool foresee(const Membership& newest);
  // These are the next members. True: on_told() comes; false: there is nothing to wait for. If they have no member of
  // those before, nor of the foreseen ones by which the pool went on, this is another pool, or the first members: then
  // nothing has moved within one, and members are only told to whom they belong.
  bool tell(std::shared_ptr<const Membership> next);
  // Just before keys go by these: from now on who has not been told is held back.
  void put_in_force(std::shared_ptr<const Membership> membership);

  void begin(const Membership::Entry& member, Done done) override;
  void cancel(const MemberStats& member) override;

 private:
  class Telling;
  struct Debtor;
  enum class Outcome : uint8_t { kTold, kOthers, kRefused, kUnfinished, kNoAnswer };

  void owe(const Membership::Entry& member, std::shared_ptr<const Membership> before);
  void forget_absent();
  void go_on();
  void look_at_waited_for(uint64_t now_ns);
  void try_again(uint64_t now_ns);
  void start(Debtor& debtor);
  void on_over(Debtor& debtor, Outcome outcome, const std::string& why);
  void count(const Debtor& debtor, Outcome outcome, const std::string& why);
  void hold_back(const Membership& before);
  bool is_in_force(const Debtor& debtor) const;

  events::EventLoop& loop_;
  const base::Clock& clock_;
  HealthWatch& watch_;
  ChangeCounters& counters_;
  TellerObserver& observer_;
  const rpc::ClientSession::Connect connect_;
  rpc::SessionOptions session_;
  bool is_on_ = true;
  uint64_t patience_ns_ = kPatienceNs;
  std::shared_ptr<const Membership> last_ = std::make_shared<const Membership>();      // that members were told of
  std::shared_ptr<const Membership> in_force_ = std::make_shared<const Membership>();  // where keys go
  std::set<std::string> pool_;  // members of `last_`, and of what was foreseen since and has one of these; by key_of()
  std::map<std::string, std::unique_ptr<Debtor>> debtors_;  // by name and address
  size_t errands_ = 0;
  bool is_waited_for_ = false;  // on_told() comes
  bool is_pending_ = false;     // from tell() to put_in_force()
  uint64_t patient_until_ns_ = 0;
  uint64_t marker_;
  uint64_t added_ = 0;  // debtors so far
  events::Event look_;
};

}  // namespace egret::pool
