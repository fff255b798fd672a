// Who the backends are, which of them a key belongs to, and a session with each.
//
//   options `backends`: fixed          ─┐                     ┌─ straight: by its address
//   a proxy's news ─ take_over(), … ────┴▶ members ─ session ─┴─ relayed: by the proxy's slots
//
// With news members come and go. A session whose member stays is kept. One whose member has left takes no op more, and is in
// leaving() until its ops are answered. A member that can be reached by both ways has one session: by the other way when the
// first one fails.
//
// Thread: the client's. Owned by an engine. Sessions are made and ended in take_over(), turn() and let_go() only: not to be
// called within a session's own call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/config/settings.h"
#include "client/engine/proxy_news.h"
#include "pool/placement.h"
#include "rpc/client_session.h"

namespace egret::client {

// transport::connect, which loads what it needs.
rpc::ClientSession::Connect default_connect();

// Who owns the router, and watches its sessions.
class SessionOwner : public rpc::SessionObserver {
 public:
  virtual void on_session_made(rpc::ClientSession& session) = 0;
  // Closes the session, which is destroyed then: nothing may know of it any more.
  virtual void end_session(rpc::ClientSession& session) = 0;

 protected:
  ~SessionOwner() = default;
};

// What sessions have counted since they began, of all of them together.
struct SessionTotals {
  rpc::LaneCounters lanes;
  uint64_t failures = 0, deliveries = 0, long_values = 0;
  void add(const rpc::SessionCounters& session);
};

class Router {
 public:
  using Sessions = std::vector<std::unique_ptr<rpc::ClientSession>>;

  // The members are those of the settings. If these have none, there is none until take_over().
  Router(const Settings& settings, const base::Clock& clock, SessionOwner& owner, rpc::ClientSession::Connect connect);

  // The session of a key's backend, whatever its state is. Null: no backend is known, or that one is not used now.
  rpc::ClientSession* session_of(std::string_view key) const { return used_[placement_.member_of(key)]; }
  const Sessions& sessions() const { return sessions_; }  // of members, in their order
  const Sessions& leaving() const { return leaving_; }
  const pool::Placement& placement() const { return placement_; }
  // Whether ops are sent to the member of that number.
  bool is_used(size_t member) const { return used_[member] != nullptr; }
  bool is_relayed(size_t member) const { return !members_.empty() && members_[member].is_relayed; }
  // Those of members, and those that are leaving.
  template <typename Visit>
  void for_each_session(Visit visit) const {
    for (const Sessions* const part : {&sessions_, &leaving_}) {
      for (const auto& session : *part) visit(*session);
    }
  }
  const SessionTotals& retired() const { return retired_; }  // of sessions that have ended

  // --- with news of a proxy
  // What the proxy has told, at `proxy`.
  void take_over(const ProxyNews::Pool& pool, const std::string& proxy);
  void set_state(uint32_t member, wire::MemberState state);
  using IsIdle = std::function<bool(const rpc::ClientSession&)>;  // it has no op under way
  // A session was lost, or could not be had. True: turn() is to be called, since there is another way.
  bool note_loss(const rpc::ClientSession& session, bool was_open, uint64_t now_ns);
  void note_open(const rpc::ClientSession& session);
  // Now and then: sessions that go through the proxy, because the straight way failed, are to try that again. True as above.
  bool look_for_straight(uint64_t now_ns);
  // Makes the sessions that go by another way, in the place of idle ones. True: there are more, for later.
  bool turn(const IsIdle& is_idle);
  // Ends those of leaving() that are idle.
  void let_go(const IsIdle& is_idle);

 private:
  struct Member {
    wire::MemberFrame frame;
    bool is_relayed = false;
    bool must_turn = false;  // to the other way
    // When the straight way, and when the relayed one, was last tried in vain; 0: never.
    uint64_t failed_ns[2] = {0, 0};
    uint64_t return_pause_ns = kFirstReturnNs;
    uint64_t return_ns = 0;  // when the straight way may be tried again
  };
  static constexpr uint64_t kFirstReturnNs = 5'000'000'000;
  static constexpr uint64_t kLongestReturnNs = 600'000'000'000;
  using Session = std::unique_ptr<rpc::ClientSession>;

  bool goes_straight(const wire::MemberFrame& member) const;
  bool has_both_ways(const Member& member) const {
    return goes_straight(member.frame) && (member.frame.ways & wire::kByRelay) != 0;
  }
  Session make_session(rpc::SessionOptions options);
  Session make_session(const Member& member);
  Member* member_of(const rpc::ClientSession& session);
  void end(Session& session);
  void set_used();

  const Settings& settings_;
  const base::Clock& clock_;
  SessionOwner& owner_;
  const rpc::ClientSession::Connect connect_;
  pool::Placement placement_;
  Sessions sessions_, leaving_;
  std::vector<rpc::ClientSession*> used_;  // by member: its session, or null; of no members: one null
  std::vector<Member> members_;            // of a proxy's pool, in the order of sessions_
  std::string proxy_;                      // its slots
  SessionTotals retired_;
};

}  // namespace egret::client
