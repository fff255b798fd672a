// Which members are ejected: an immutable snapshot that is replaced as a whole with each verdict.
//
//   HealthWatch (control thread) ─ another Health ─▶ each worker's Pool, between two passes: closes or starts sessions
//
// A member is known by its MemberStats, as from one membership to the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pool/membership.h"

namespace egret::pool {

// Why a member was ejected. Values are shown in a metric: do not renumber.
enum class EjectReason : uint8_t {
  kNone = 0,
  kUnreachable = 1,  // no worker has a session, and nobody answers at its address
  kTimeouts = 2,     // ops in a row were not answered in time
};
// As in "it was ejected because …".
const char* to_string(EjectReason reason);
// One word: "unreachable".
const char* word_of(EjectReason reason);

// What happens to ops on the keys of an ejected member.
enum class Absence : uint8_t {
  kFails,    // they fail at once
  kStoodIn,  // the gutter's member of the key takes them, if it has been entered; else they fail
  kWaits,    // they wait for a moment: the member is about to return
};

// An ejected member.
struct Absent {
  const MemberStats* member = nullptr;
  Absence how = Absence::kFails;
  bool opens = false;                         // workers open their sessions with it, to which no op goes yet
  uint64_t tag = 0;                           // that ops in its place carry
  std::vector<const MemberStats*> entered{};  // kStoodIn: those of the gutter that take ops in its place

  bool operator==(const Absent&) const = default;
};

class Health {
 public:
  Health() = default;  // nobody is ejected
  // `membership`: see membership().
  Health(uint64_t version, std::vector<Absent> absent, uint64_t membership = 0)
      : version_(version), membership_(membership), absent_(std::move(absent)) {
    std::ranges::sort(absent_, {}, &Absent::member);
  }
  // Nobody stands in for these.
  Health(uint64_t version, std::span<const MemberStats* const> ejected) : Health(version, failing(ejected)) {}

  // 0, 1, 2, …: another number is another snapshot.
  uint64_t version() const { return version_; }
  // The version of the membership whose members were judged. Only its members are named absent.
  uint64_t membership() const { return membership_; }
  // Null: it is in service.
  const Absent* find(const MemberStats& member) const {
    const auto at = std::ranges::lower_bound(absent_, &member, {}, &Absent::member);
    return at != absent_.end() && at->member == &member ? &*at : nullptr;
  }
  bool is_ejected(const MemberStats& member) const { return find(member) != nullptr; }
  size_t ejected() const { return absent_.size(); }
  std::span<const Absent> absent() const { return absent_; }
  // Whether the same is said of the same members.
  bool is_same(const Health& other) const { return absent_ == other.absent_; }

 private:
  static std::vector<Absent> failing(std::span<const MemberStats* const> ejected) {
    std::vector<Absent> absent;
    for (const MemberStats* member : ejected) absent.push_back({.member = member});
    return absent;
  }

  uint64_t version_ = 0;
  uint64_t membership_ = 0;
  std::vector<Absent> absent_;  // sorted
};

}  // namespace egret::pool
