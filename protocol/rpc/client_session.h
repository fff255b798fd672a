// One proxy worker's session with one backend: it connects, owns the lanes, flushes and fetches in passes, and connects
// again when it is lost.
//
//   kWaiting ──start, or back-off over──▶ kHandshaking ──granted, region mapped──▶ kOpen
//      ▲                                       │ refused, failed                     │ peer gone, malformed, stuck
//      └───────────────────────────────────────┴─────────────────────────────────────┘ every op under way fails once
//
// Where the backend has two addresses (rdma+tcp), the attempt after one that failed by the first goes by the second, at
// once (resize/transport_choice.h).
//
// A backend that has many newcomers at once may ask this one to come back after a time: that is no failure of it, unless
// it does so again and again.
//
// close(kClosed) leads there from everywhere, start() out of it: nothing is tried in between.
//
// An open session may go on in another: of another size (Growth), or by RDMA again. No op fails or overtakes another, and
// nobody but the owner of its descriptors notices:
//
//   successor's handshake ─ granted ─▶ no op begins any more ─ all are answered, nothing is held ─▶ lanes, endpoint and
//   grant are the successor's; the first endpoint is closed     └ refused, lost, not empty in time: it stays
//
// A new session has a new region, nonce and seqs; nothing of an old session is ever sent again. With a secret, the
// handshake has a challenge and its answer, and only a backend that proves that it holds the secret, too, is accepted.
// Thread: the worker's. Errors: never thrown; a session that breaks calls on_session_lost once and reconnects by
// itself.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/clock.h"
#include "base/split_mix.h"
#include "rpc/credit_queue.h"
#include "rpc/idle/spin_judge.h"
#include "rpc/lanes.h"
#include "rpc/opening.h"
#include "rpc/resize/successor.h"
#include "rpc/resize/transport_choice.h"
#include "rpc/resize/window_plan.h"
#include "rpc/session_options.h"
#include "transport/transport.h"
#include "wire/handshake.h"

namespace egret::rpc {

class ClientSession;

// What the session's owner must know: which descriptors to watch. If it cannot watch one, the session is lost, with that
// error; on_session_lost() follows.
class SessionObserver {
 public:
  // A control channel exists: watch its control_fd() for reading, level-triggered, and call on_control_ready().
  virtual base::Status on_session_connecting(ClientSession& session) = 0;
  // Data may flow: watch its data_fd(), if it has one, for reading, edge-triggered; being woken is all it is for.
  virtual base::Status on_session_open(ClientSession& session) = 0;
  // Both descriptors are about to close: stop watching. `why` is for the log.
  virtual void on_session_lost(ClientSession& session, const std::string& why, bool was_open) = 0;
  // The attempt by the preferred address has failed: as on_session_lost() before it was open, but the fallback is tried
  // at once. Whoever gives up at on_session_lost() must override this, or it gives up here, too.
  virtual void on_session_falls_back(ClientSession& session, const std::string& why) {
    on_session_lost(session, why, false);
  }
  // The session goes on with other descriptors: they are to be watched instead of those before, which close afterwards.
  virtual base::Status on_session_resized(ClientSession& session) {
    if (base::Status watched = on_session_connecting(session); !watched) return watched;
    return on_session_open(session);
  }
  // After on_session_lost(): false, if the endpoint's descriptors are not its own any more, since somebody else in this
  // process has closed them. Then nothing of it is touched again, nor freed.
  virtual bool may_close(const ClientSession& /*session*/) { return true; }
  // The session keeps its size. `why` is for the log.
  virtual void on_session_not_resized(ClientSession& /*session*/, const std::string& /*why*/) {}
  // As on_session_resized(): the session goes by the preferred address again.
  virtual base::Status on_session_returned(ClientSession& session) { return on_session_resized(session); }
  // The preferred address was tried, and the session goes on by the fallback.
  virtual void on_session_not_returned(ClientSession& /*session*/, const std::string& /*why*/) {}
  // There is something to do for it in a pass; told once, until begin_pass() says that there is nothing (active_sessions.h).
  virtual void on_session_active(ClientSession& /*session*/) {}
  // Ops were not answered in time: its signs tell of more timeouts.
  virtual void on_session_timeout(ClientSession& /*session*/) {}

 protected:
  ~SessionObserver() = default;
};

class ClientSession final : private WorkListener, private transport::ReadyListener {
 public:
  enum class State : uint8_t { kWaiting, kHandshaking, kOpen, kClosed };
  using Connect = Successor::Connect;

  // `connect` is transport::connect, or a test's. `counters`: where this session counts on after an earlier one of the
  // same worker and backend; null: from 0.
  ClientSession(const SessionOptions& options, const base::Clock& clock, SessionObserver& observer, Connect connect,
                std::shared_ptr<SessionCounters> counters = nullptr);
  ~ClientSession();

  // --- set-up and death
  // Connects at once. A new session, or a closed one.
  void start();
  void on_control_ready();
  // Time-outs of ops and of set-up, reconnecting. To be called about every kTickNs while needs_tick().
  void tick();
  bool needs_tick() const {
    return (!is_open() && state_ != State::kClosed) || lanes_.outstanding() > 0 || lanes_.is_upload_waiting() ||
           successor_ != nullptr;
  }
  static constexpr uint64_t kTickNs = 20'000'000;
  // Where the endpoint's limits say that silence must be probed, or the session has slots to give back: to be called
  // about every transport::kKeepAliveNs while it returns true.
  bool keep_alive();
  // Ends the session, if there is one; kWaiting: another attempt follows. kClosed: none does, until start(); that is no
  // sign of the backend, and what it showed before is forgotten.
  void close(State next = State::kWaiting);

  State state() const { return state_; }
  // Of an open session: whether the lane of the key with this hash has answered nothing for op_timeout, although it was asked. No
  // op should be begun there until it answers or the session is lost: it would wait for longer than op_timeout. Ops that wait for
  // credit are called when a lane becomes silent, so that they can be answered.
  friend bool is_silent(ClientSession& session, uint64_t hash) { return session.lanes_.of(hash).progress().is_silent; }
  // Within on_session_lost(): the backend has asked the session to come back later, and it will. That is no failure.
  friend bool is_asked_back(const ClientSession& session) { return session.is_asked_back_; }
  bool is_open() const { return state_ == State::kOpen; }
  // By the second of its two addresses (rdma+tcp:): the open session; after on_session_lost(), the next attempt.
  friend bool goes_by_fallback(const ClientSession& session) { return session.choice_.is_fallback(); }
  // Address, worker_id, relayed_to and the group stay as they are; a relayed session has no secret. Window, slot sizes, queue pairs and secret count from the next handshake on,
  // everything else at once.
  void set_options(SessionOptions options);
  // What the session runs on: descriptors to watch, limits, facts for a log line. Not while kWaiting.
  const transport::ClientEndpoint& endpoint() const { return *endpoint_; }
  const wire::Grant& grant() const { return opening_.grant(); }  // open only
  // Of this session and those before it, lane by lane. Reading is for any thread.
  SessionCounters& counters() { return *counters_; }

  // --- for those who send ops
  Lanes& lanes() { return lanes_; }
  CreditQueue& credit() { return credit_; }

  // --- the passes, in the worker's order
  // The endpoint's data_fd() was readable: something was delivered. The next pass fetches it.
  void on_data_ready();
  // Says whether there is anything to do in this pass. If not, the session needs no passes until on_session_active().
  // kUnarmed: but, once, prepare_sleep() before the worker sleeps.
  enum class Rest : uint8_t { kActive, kUnarmed, kAtRest };
  Rest begin_pass();
  void flush();
  // Fetches what is due and hands out results. Returns whether anything came in. Then it is credit().hand_out()'s turn.
  bool fetch();
  // Whether the worker should poll on instead of sleeping. To be asked in every pass before sleeping.
  bool should_spin();
  // The worker does not poll on: what it waits for has not come in time.
  friend void end_spin(ClientSession& session);
  // Before sleeping: want, fence, one more fetch. False: do not sleep, because something came in or, over a network,
  // the last fetch has not completed yet: go on with passes and ask again.
  bool prepare_sleep();

  // By the session's clock.
  friend uint64_t now_ns(const ClientSession& session) { return session.clock_.now_ns(); }

  // The thread of the next call becomes the owner, as when a program hands its client to another thread. The threads must not
  // call at the same time.
  friend void release_owner(ClientSession& session);

 private:
  friend class SessionRef;
  friend class SessionAnchor;
  friend class ActiveSessions;  // which asks it alone for arm_at_rest()

  void on_work() override;
  void on_ready(uint64_t token) override;
  Rest rest();
  bool arm_at_rest();
  void connect_now();
  void on_frame(std::span<const std::byte> frame);
  void open();
  void lose(const std::string& why);
  uint64_t asked_pause_ns() const;
  void end(const std::string& why, State next);
  void fall_back(const std::string& why);
  void drop_endpoint(State next);
  void count_answer();
  void count_timeouts(uint64_t expired, uint64_t unanswered);
  void stage_fetches();
  void answer_gathered();
  const char* poll_events(bool& progress);
  void end_wait(bool paid);
  bool may_resize() const;
  SessionOptions asked(bool is_large) const;
  void settle(bool is_large);
  void look_at_size();
  void look_for_better();
  void begin_resize(Successor::Aim aim);
  void go_on_resizing();
  bool resize_if_empty();
  void stay(const std::string& why);
  void let_in();

  base::OwnerThread owner_;
  SessionOptions options_;
  const base::Clock& clock_;
  SessionObserver& observer_;
  const Connect connect_;

  State state_ = State::kWaiting;
  uint64_t now_ns_ = 0;       // of this pass
  uint64_t ticked_ns_ = 0;    // when tick() was called last
  uint64_t taken_ns_ = 0;     // when results last came in; durations are measured to here, since now_ns_ may be old
  uint64_t deadline_ns_ = 0;  // kWaiting: when to try again; kHandshaking: when to give up
  uint64_t backoff_ns_ = 0;   // the longest pause before the next attempt; the shortest is half of it
  base::SplitMix chance_;     // in pauses
  bool is_asked_back_ = false;
  uint32_t asked_back_ = 0;  // times in a row that the backend has asked us to come back
  uint64_t opened_ns_ = 0;
  bool has_served_ = false;   // since it was opened
  uint64_t answered_ns_ = 0;  // when the backend last answered a message, of this session or an earlier one
  uint64_t timeouts_ = 0;     // messages since then that were overdue
  std::unique_ptr<transport::ClientEndpoint> endpoint_;
  Opening opening_;     // the handshake under way, or that of this session
  uint64_t worker_id_;  // that of options_, or its twin: see asked()
  WindowPlan plan_;
  TransportChoice choice_;
  uint64_t unheard_ns_ = 0;  // kHandshaking: when to give up a backend that has said nothing
  std::unique_ptr<Successor> successor_;
  bool is_emptying_ = false;                         // for successor_: no op begins
  const std::shared_ptr<SessionCounters> counters_;  // of this session and of earlier ones
  Lanes lanes_{SessionTimes{now_ns_, taken_ns_}, this};
  CreditQueue credit_{lanes_, this};
  bool is_active_ = false;   // on_session_active() was called, and begin_pass() has not said otherwise
  bool is_unarmed_ = false;  // begin_pass() has said so, and it was not prepared for a sleep since
  bool must_poll_ = false;   // the endpoint may have something to tell
  size_t next_fetch_ = 0;    // the lane that may stage reads first, so that none starves when the read depth is small
  // Local endpoints only: whether the worker polls while it waits for responses. kIdle: it waits for nothing.
  enum class Wait : uint8_t { kIdle, kPolled, kNotPolled };
  Wait wait_ = Wait::kIdle;
  SpinJudge spin_judge_;
  std::array<transport::Event, 64> events_;  // found by one poll(); a member, so that it is not built for each
  std::string failure_;                      // why the endpoint broke
  uint32_t holders_ = 0;                     // SessionRefs to this session
  uint32_t anchors_ = 0;                     // SessionAnchors
};

void release_owner(ClientSession& session);

void end_spin(ClientSession& session);

}  // namespace egret::rpc
