// A change of the members of the pool that this backend belongs to, as proxies tell it (op::AdminVerb::kMember): takes
// the members before in parts, and has the store remove what was not its own among those. Each partition does so by
// itself.
//
//   nothing ─ a part ─▶ collecting ─ the last part ─▶ purging (store::Purger) ─▶ the members now are known: nothing
//
// Every byte is a peer's, and is checked here. Several proxies may tell of the same change: they help each other.
// Thread: the partition's. Memory: the bytes of one membership, at most op::kMostMembersLength.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "changes/tombstones.h"
#include "op/op.h"
#include "store/upkeep/purger.h"

namespace egret::backend {

class MemberChange {
 public:
  // `tombstones` are told when the members have changed.
  MemberChange(store::Purger& purger, Tombstones& tombstones) : purger_(purger), tombstones_(tombstones) {}

  // Answers the verb, whose value this is, and does a step of what is under way.
  op::ResultCode answer(std::string_view value, uint64_t now_ns);

  // A backend that joins a pool, and belongs to it already, has been told by another proxy, if that was within this
  // time; each telling prolongs it, so that a slow rollout over many proxies empties a backend once. Later it may have
  // left meanwhile without being told: what it holds is removed again.
  static constexpr uint64_t kJoinsOnceNs = 3'600'000'000'000;

 private:
  struct Told;
  op::ResultCode begin(const Told& told, uint64_t now_ns);
  op::ResultCode collect(const Told& told);
  void assume(uint64_t members);
  op::ResultCode purge(store::Purger::Keeps keeps);
  bool is_done(const Told& told, uint64_t now_ns) const;

  store::Purger& purger_;
  Tombstones& tombstones_;
  uint64_t from_ = 0;           // of the change that is collected or purged
  uint64_t to_ = 0;             // 0: none
  std::string collected_;       // the beginning of the members before
  bool is_purging_ = false;     // until it is known that the purge is over
  store::Purger::Keeps keeps_;  // of the purge; null: it removes everything
  uint64_t adopted_ns_ = 0;     // when the present members were last told of; 0: before this process began, or in doubt
  uint64_t assumed_ = 0;        // other members, which a proxy has started with; 0: none
};

}  // namespace egret::backend
