// One worker's sessions with the members of a pool: where an op on a key goes, and what happens to the sessions when the
// members change. Thread: the worker's.
//
//   key ─▶ Membership ─▶ member ─▶ session ─ open? ─▶ hash with that backend's seed ─▶ lane
//
//   prepare(): new members get sessions, to which no key goes yet     apply(): keys go by the new membership
//     kJoining ─ apply() ─▶ kServing ─ is not in the next one ─▶ kLeaving ─ nothing is under way, or kLeaveNs are over:
//     closed ─ nobody holds it ─▶ destroyed
//   A member that stays keeps its session.
//
// An ejected member's session is closed: what was under way with it has failed, nothing is tried, and its keys' ops fail at
// once, until it returns (health.h).
//
// Ops on keys of a backend that cannot be reached fail; its keys are not moved to other backends. If they were moved,
// the backend would serve stale values when it comes back, and proxies that reach different backends (because one link
// is down) would read and write different copies of a key.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "pool/health.h"
#include "pool/membership.h"
#include "rpc/client_session.h"

namespace egret::pool {

// Where an op goes. `session` is null when the key's backend cannot be reached just now.
struct Route {
  rpc::ClientSession* session = nullptr;
  uint64_t hash = 0;
};

class Pool {
 public:
  using Sessions = std::vector<std::unique_ptr<rpc::ClientSession>>;
  // Makes the session with a member, not started.
  using MakeSession = std::function<std::unique_ptr<rpc::ClientSession>(const Membership::Entry&)>;

  // What is under way with a member that has left may last so long, for example a client that sends a value slowly.
  static constexpr uint64_t kLeaveNs = 60'000'000'000;

  explicit Pool(MakeSession make) : make_(std::move(make)) {}

  // Makes sessions with members that `next` has and the one in force has not; returns them: to be started.
  std::vector<rpc::ClientSession*> prepare(const Membership& next);
  // Whether there is an open session with each of its members that is not ejected.
  bool is_ready_for(const Membership& next) const;
  // Keys go by this one from now on. Between two passes. Returns new sessions, as prepare().
  std::vector<rpc::ClientSession*> apply(std::shared_ptr<const Membership> membership, uint64_t now_ns);
  const Membership& membership() const { return *membership_; }
  // Sessions with ejected members are closed from now on, those with members that returned are started. Between two
  // passes, and after apply().
  void take(std::shared_ptr<const Health> health);
  const Health& health() const { return *health_; }

  Route route(std::string_view key) const {
    if (membership_->members().empty()) return {};
    rpc::ClientSession* session = sessions_[membership_->owner_of(key)].get();
    if (!session->is_open()) return {};
    return {session, session->lanes().hash(key)};
  }
  // The sessions with all members, in their order: for flush_all and stats.
  std::span<const std::unique_ptr<rpc::ClientSession>> serving() const {
    return std::span(sessions_).first(membership_->members().size());
  }

  // These, and those with members that are joining or leaving: for the worker's passes.
  const Sessions& sessions() const { return sessions_; }
  // The member that a session is with, or was until it left.
  const Membership::Entry& member_of(const rpc::ClientSession& session) const;
  bool is_leaving(const rpc::ClientSession& session) const;
  bool is_anybody_leaving() const { return leaving_ > 0 || !closed_.empty(); }
  // Closes sessions with members that have left and have nothing under way, and destroys those that nobody holds, which
  // it returns: to be forgotten. Not within a call of one of them.
  std::vector<const rpc::ClientSession*> let_leave(uint64_t now_ns);

 private:
  enum class State : uint8_t { kServing, kJoining, kLeaving };
  struct Seat {
    Membership::Entry entry;
    State state = State::kServing;
    uint64_t leaves_ns = 0;  // kLeaving: when it is closed at the latest
  };
  using Known = std::map<const MemberStats*, size_t>;

  Known known() const;
  size_t index_of(const rpc::ClientSession& session) const;
  static bool has_work(rpc::ClientSession& session);

  MakeSession make_;
  std::shared_ptr<const Membership> membership_ = std::make_shared<const Membership>();
  std::shared_ptr<const Health> health_ = std::make_shared<const Health>();
  Sessions sessions_;        // the members', in their order, then the others'
  std::vector<Seat> seats_;  // of the same index
  size_t leaving_ = 0;
  Sessions closed_;  // wait for their holders
};

}  // namespace egret::pool
