// The sessions of one worker that a pass must look at. A pass touches no other session, so an idle backend costs
// nothing.
//
//            on_session_active()                 begin_pass(): nothing to do
//   at rest ─────────────────────▶ active ──────┬─ local ─────────▶ at rest
//      ▲                             ▲          └─ over a network ─▶ unarmed
//      └── prepare_sleep(): armed ───┼──────────────────────────────── ┘
//                                    └ on_session_active()
//
// A session over a network that is at rest is armed: whatever its peer causes shows at its data_fd(), and it becomes
// active. While the worker does not sleep nobody arms: what is unarmed is looked at by the next keep-alive, or shows at
// its control_fd(). Sessions in the worker's group are polled and armed all at once: a session at rest becomes active as
// soon as a pass finds something for it.
//
// Owned by the worker, as the sessions are. Thread: the worker's.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace egret::transport {
class PollGroup;
}

namespace egret::rpc {

class ClientSession;

class ActiveSessions {
 public:
  // `group`: of those sessions that were made in one; outlives this object. Null: there is none.
  explicit ActiveSessions(transport::PollGroup* group = nullptr) : group_(group) {}
  // From the worker's SessionObserver::on_session_active().
  void add(ClientSession& session) { active_.push_back(&session); }
  // A session is, or has just been, destroyed.
  void forget(const ClientSession* session);

  // --- the passes, in the worker's order: ClientSession's, of every active one
  void begin_pass();
  void flush();
  bool fetch();
  bool hand_out_credit();
  bool should_spin();
  void end_spin();
  bool prepare_sleep();

  // Ops were appended, or may have been, since the sessions were flushed.
  bool has_appended() const;
  // A result has not come yet.
  bool awaits() const;
  // Answers that hold many slots should be sent before further results are taken.
  bool holds_much() const;
  bool needs_tick() const;
  size_t count() const { return active_.size(); }

 private:
  transport::PollGroup* const group_;
  // Loops go by position: sessions become active while others are handled.
  std::vector<ClientSession*> active_;
  std::vector<ClientSession*> unarmed_;  // also some that have become active again
};

}  // namespace egret::rpc
