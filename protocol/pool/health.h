// Which members are ejected: an immutable snapshot that is replaced as a whole with each verdict.
//
//   HealthWatch (control thread) ─ another Health ─▶ each worker's Pool, between two passes: closes or starts sessions
//
// A member is known by its MemberStats, as from one membership to the next.
#pragma once

#include <algorithm>
#include <cstdint>
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

class Health {
 public:
  Health() = default;  // nobody is ejected
  Health(uint64_t version, std::vector<const MemberStats*> ejected) : version_(version), ejected_(std::move(ejected)) {
    std::ranges::sort(ejected_);
  }

  // 0, 1, 2, …: another number is another snapshot.
  uint64_t version() const { return version_; }
  bool is_ejected(const MemberStats& member) const { return std::ranges::binary_search(ejected_, &member); }
  size_t ejected() const { return ejected_.size(); }
  // Whether the same members are ejected.
  bool is_same(const Health& other) const { return ejected_ == other.ejected_; }

 private:
  uint64_t version_ = 0;
  std::vector<const MemberStats*> ejected_;  // sorted
};

}  // namespace egret::pool
