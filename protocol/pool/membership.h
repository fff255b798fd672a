// Who the members of a pool are, and where its keys go: an immutable whole that is replaced when the members change.
//
//   Membership 7 ─ replaced by ─▶ Membership 8     a member that stays (same name and address) keeps its MemberStats, by
//                                                  which it is known from one membership to the next
//
// Built on the control thread; read by every worker and by those who report, each with a shared_ptr of its own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "base/log/log.h"
#include "pool/member.h"
#include "pool/placement.h"
#include "rpc/lane_counters.h"

namespace egret::pool {

// What this process counts of a member, as long as it is one. Any thread; `health` is written by the control thread.
struct MemberStats {
  explicit MemberStats(size_t workers);

  struct Health {
    base::Gauge is_ejected;  // 1 while it is
    base::Gauge why;         // EjectReason of the last ejection
    base::Gauge changed_ns;  // when it was last ejected or returned, by the clock of the process; 0: never
    base::Counter ejections;
    base::Counter probes;         // and those
    base::Counter failed_probes;  // that it did not answer
  };

  std::vector<std::shared_ptr<rpc::SessionCounters>> sessions;  // by worker
  base::LogLimit failures{1};                                   // of lines about sessions that cannot be opened
  Health health;

  // How many workers have an open session with it.
  size_t open_sessions() const;
};

class Membership {
 public:
  struct Entry {
    Member member;
    std::shared_ptr<MemberStats> stats;
  };

  // None. Keys go nowhere.
  Membership() = default;
  // `members`: check_members() has accepted them. `before`: those that are replaced, or were to replace them; the last
  // is the newest.
  Membership(PlacementRule rule, std::span<const Member> members, size_t workers,
             std::initializer_list<const Membership*> before);

  // 0: none; 1, 2, …: another number is another membership.
  uint64_t version() const { return version_; }
  // In the order of their configuration.
  std::span<const Entry> members() const { return members_; }
  // The index of the member that owns a key. Not without members.
  size_t owner_of(std::string_view key) const { return placement_.member_of(key); }
  const Placement& placement() const { return placement_; }
  bool is_same(PlacementRule rule, std::span<const Member> members) const;

 private:
  uint64_t version_ = 0;
  std::vector<Entry> members_;
  Placement placement_;
};

}  // namespace egret::pool
