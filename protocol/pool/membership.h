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
    base::Gauge is_held_back;     // 1 while it has not been told of a change of members
  };

  struct Failover {
    base::Gauge stands_in;  // 1 while the gutter takes its keys
    base::Counter purged_keys;
    base::Counter flushes;  // instead of purging keys
  };

  std::vector<std::shared_ptr<rpc::SessionCounters>> sessions;  // by worker
  base::LogLimit failures{1};                                   // of lines about sessions that cannot be opened
  base::LogLimit no_stand_in{1};                                // of lines about one of the gutter that is not entered
  Health health;
  Failover failover;

  // How many workers have an open session with it.
  size_t open_sessions() const;
  // How many of them go by the transport of this name.
  size_t open_sessions_by(std::string_view transport) const;
};

class Membership {
 public:
  static constexpr size_t kMaxGutter = 64;

  struct Entry {
    Member member;
    std::shared_ptr<MemberStats> stats;
  };

  // None. Keys go nowhere.
  Membership() = default;
  // `members`: check_members() has accepted them. `before`: those that are replaced, or were to replace them; the last
  // is the newest. `gutter`: members that own no key, and stand in for members that are absent (pool/gutter); at most
  // kMaxGutter, accepted likewise.
  Membership(PlacementRule rule, std::span<const Member> members, size_t workers,
             std::initializer_list<const Membership*> before, std::span<const Member> gutter = {});

  // 0: none; 1, 2, …: another number is another membership.
  uint64_t version() const { return version_; }
  // Those that own keys, in the order of their configuration.
  std::span<const Entry> members() const { return std::span(entries_).first(placement_.size()); }
  std::span<const Entry> gutter() const { return std::span(entries_).subspan(placement_.size()); }
  // The members, then the gutter's.
  std::span<const Entry> all() const { return entries_; }
  // The index of the member that owns a key. Not without members.
  size_t owner_of(std::string_view key) const { return placement_.member_of(key); }
  // The index in gutter() of the one that stands in for the key's owner, whoever that is. Not without a gutter.
  size_t gutter_of(std::string_view key) const { return gutter_placement_.member_of(key); }
  const Placement& placement() const { return placement_; }
  bool is_same(PlacementRule rule, std::span<const Member> members, std::span<const Member> gutter = {}) const;

 private:
  uint64_t version_ = 0;
  std::vector<Entry> entries_;
  Placement placement_;
  Placement gutter_placement_;  // by rendezvous, whatever the rule is: the least moves when the gutter changes
};

}  // namespace egret::pool
