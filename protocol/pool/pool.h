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
// once, until it returns (health.h). Or the gutter's member of the key takes them, marked with the absent owner's tag
// (gutter/README.md).
//
// Keys are never simply moved to other backends. If they were, the backend would serve stale values when it comes back,
// and proxies that reach different backends (because one link is down) would read and write different copies of a key.
#pragma once

#include <algorithm>
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
  uint64_t tag = 0;    // not 0: the session is with one that stands in for the key's owner: stand_in() marks the op
  bool waits = false;  // no session yet: ask again when Pool::returns() announces
};

class Pool {
 public:
  using Sessions = std::vector<std::unique_ptr<rpc::ClientSession>>;
  // Makes the session with a member, not started.
  using MakeSession = std::function<std::unique_ptr<rpc::ClientSession>(const Membership::Entry&)>;

  // What is under way with a member that has left may last so long, for example a client that sends a value slowly.
  static constexpr uint64_t kLeaveNs = 60'000'000'000;

  explicit Pool(MakeSession make) : make_(std::move(make)) {}

  // Makes sessions with members that `next` has and the one in force has not; returns them: to be started. One that is
  // leaving, and has not gone yet, keeps its session. Once more after apply(), if there are further ones by then.
  std::vector<rpc::ClientSession*> prepare(const Membership& next);
  // Whether there is an open session with each of its members that is not ejected, and nothing is under way any more with
  // those that had left before.
  bool is_ready_for(const Membership& next) const;
  // Keys go by this one from now on. Between two passes. Returns new sessions, as prepare(). Sessions with members that
  // leave, and that somebody holds or that have work, last `leave_ns`. What is still under way with members that had left
  // before, and are back, fails.
  std::vector<rpc::ClientSession*> apply(std::shared_ptr<const Membership> membership, uint64_t now_ns,
                                         uint64_t leave_ns = kLeaveNs);
  const Membership& membership() const { return *membership_; }
  // Sessions with ejected members are closed from now on, those with members that returned are started. Between two
  // passes, and after apply(). False: it judges the members of a later membership, which is to be applied first.
  // Members that leave with that one are not named absent any more, and keys would go to them here.
  bool take(std::shared_ptr<const Health> health);
  const Health& health() const { return *health_; }

  Route route(std::string_view key) const {
    if (membership_->members().empty()) return {};
    const size_t owner = membership_->owner_of(key);
    rpc::ClientSession* session = direct_[owner];
    if (session == nullptr) [[unlikely]]
      return elsewhere(owner, key);
    if (!session->is_open()) return {};
    const uint64_t hash = session->lanes().hash(key);
    if (is_silent(*session, hash)) [[unlikely]]
      return {};
    return {session, hash};
  }
  // Those who stand in for an absent member, with its tag; null: nobody does for it.
  struct Aside {
    uint64_t tag = 0;
    bool waits = false;
    std::vector<rpc::ClientSession*> stand_ins;  // by the gutter's index; null: not entered. Empty: its keys fail.
  };
  const Aside* aside_of(size_t member) const { return asides_.empty() ? nullptr : &asides_[member]; }
  bool is_absent(size_t member) const { return direct_[member] == nullptr; }
  // Whether the keys of some member wait for its return.
  bool is_anybody_returning() const { return std::ranges::any_of(asides_, &Aside::waits); }
  // Those whose route waits: they are called when members have returned, or are absent again.
  rpc::CreditQueue& returns() const { return returns_; }
  // The sessions with all members that own keys, in their order: for flush_all and stats.
  std::span<const std::unique_ptr<rpc::ClientSession>> serving() const {
    return std::span(sessions_).first(membership_->members().size());
  }
  // ... and those with the gutter's.
  std::span<const std::unique_ptr<rpc::ClientSession>> gutter() const {
    return std::span(sessions_).subspan(membership_->members().size(), membership_->gutter().size());
  }

  // These, and those with members that are joining or leaving: for the worker's passes.
  const Sessions& sessions() const { return sessions_; }
  // Null: the member is none of them.
  rpc::ClientSession* session_with(const MemberStats& member) const;
  // The member that a session is with, or was until it left.
  const Membership::Entry& member_of(const rpc::ClientSession& session) const;
  bool is_leaving(const rpc::ClientSession& session) const;
  // Keys will go to it, and do not yet.
  bool is_joining(const rpc::ClientSession& session) const;
  bool is_anybody_leaving() const { return leaving_ > 0 || !closed_.empty(); }
  // Closes sessions with members that have left, once nothing is under way and nobody anchors them (SessionAnchor), and
  // destroys those that nobody holds, which it returns: to be forgotten. Not within a call of one of them.
  std::vector<const rpc::ClientSession*> let_leave(uint64_t now_ns);

 private:
  enum class State : uint8_t { kServing, kJoining, kLeaving };
  struct Seat {
    Membership::Entry entry;
    State state = State::kServing;
    uint64_t leaves_ns = 0;             // kLeaving: when it is closed at the latest
    mutable bool has_old_work = false;  // kJoining: from before it left, as far as is known
  };
  using Known = std::map<const MemberStats*, size_t>;

  Known known() const;
  void stay(Seat& seat);
  void look_for_old_work(size_t seat) const;
  size_t index_of(const rpc::ClientSession& session) const;
  static bool has_work(rpc::ClientSession& session);
  [[gnu::cold]] Route elsewhere(size_t owner, std::string_view key) const;
  void choose_routes();

  MakeSession make_;
  std::shared_ptr<const Membership> membership_ = std::make_shared<const Membership>();
  std::shared_ptr<const Health> health_ = std::make_shared<const Health>();
  Sessions sessions_;                        // the members', in their order, the gutter's, then the others'
  std::vector<Seat> seats_;                  // of the same index
  std::vector<rpc::ClientSession*> direct_;  // by member: null: it is absent
  std::vector<Aside> asides_;                // by member; empty: nobody is absent
  size_t leaving_ = 0;
  Sessions closed_;  // wait for their holders
  const uint64_t no_time_ = 0;
  const rpc::Lanes no_lanes_{rpc::SessionTimes{no_time_, no_time_}};  // returns_ waits for none
  mutable rpc::CreditQueue returns_{no_lanes_};                       // those who wait are no part of what it says
};

}  // namespace egret::pool
