// Which member of a pool owns a key, by one of two rules.
//
//   rule, members ─▶ Placement: KetamaRing or Rendezvous ─ key ─▶ index of the member
//
// Immutable after construction: any thread. Share it by std::shared_ptr<const Placement>; a change of members makes
// another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pool/ketama.h"
#include "pool/member.h"
#include "pool/rendezvous.h"

namespace egret::pool {

enum class PlacementRule : uint8_t { kKetama, kRendezvous };

// "ketama", "rendezvous".
std::string_view to_string(PlacementRule rule);

class Placement {
 public:
  Placement() = default;  // of no members
  // `members`: as check_members() takes them, or none. Their order is that of the indices, and does not decide where
  // keys are.
  Placement(PlacementRule rule, std::span<const Member> members);

  PlacementRule rule() const { return ring() != nullptr ? PlacementRule::kKetama : PlacementRule::kRendezvous; }
  size_t size() const { return shares_.size(); }

  // The index of the member that owns the key. There is at least one; a pool of one costs no hash.
  size_t member_of(std::string_view key) const {
    if (size() <= 1) return 0;
    const KetamaRing* const by_ketama = ring();
    return by_ketama != nullptr ? by_ketama->server_of(key) : std::get<Rendezvous>(rule_).member_of(key);
  }
  // The natural order of failover: the owner, then who owns the key without the owner, and so on. Fills `out` as far as
  // there are members that can own keys, and returns how many it wrote.
  size_t order_of(std::string_view key, std::span<uint32_t> out) const;
  // The share of keys that a member should have; all are 1 together. With ketama it is exact, and 0 for a weight that is
  // too small for a point on the ring. With rendezvous it is the weight's share.
  double share_of(size_t member) const { return shares_[member]; }

  // For people: how the key came to its owner. "its hash 0x0000001f is followed by the point 0x0000002a of the ring".
  std::string why(std::string_view key) const;

 private:
  const KetamaRing* ring() const { return std::get_if<KetamaRing>(&rule_); }

  std::variant<KetamaRing, Rendezvous> rule_;
  std::vector<double> shares_;  // of each member
};

}  // namespace egret::pool
