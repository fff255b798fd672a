// One proxy worker's session with one backend: it connects, owns the lanes, flushes and fetches in passes, and connects
// again when it is lost.
//
//   kWaiting ──start, or back-off over──▶ kHandshaking ──granted, region mapped──▶ kOpen
//      ▲                                       │ refused, failed                     │ peer gone, malformed, stuck
//      └───────────────────────────────────────┴─────────────────────────────────────┘ every op under way fails once
//
// A new session has a new region, nonce and seqs; nothing of an old session is ever sent again. With a secret, the
// handshake has a challenge and its answer, and only a backend that proves that it holds the secret, too, is accepted.
// Thread: the worker's. Errors: never thrown; a session that breaks calls on_session_lost once and reconnects by
// itself.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/secret.h"
#include "rpc/client_lane.h"
#include "rpc/spin_judge.h"
#include "rpc/upload_room.h"
#include "transport/address.h"
#include "transport/transport.h"
#include "wire/handshake.h"
#include "wire/proof.h"

namespace egret::rpc {

struct SessionOptions {
  std::string address;  // transport/address.h
  transport::ConnectOptions connect;
  uint64_t worker_id = 0;  // random; see wire::Hello
  uint32_t window = 8;
  base::Secret secret;  // none: this client proves nothing, and asks for no proof
  uint64_t op_timeout_ns = 2'000'000'000;
  uint64_t connect_timeout_ns = 2'000'000'000;
  uint64_t backoff_min_ns = 10'000'000;
  uint64_t backoff_max_ns = 1'000'000'000;
  uint64_t spin_ns = 20'000;  // in fetch mode a message is waited for this long before the worker sleeps
  FetchOptions fetch;
};

class ClientSession;

// What the session's owner must know: which descriptors to watch.
class SessionObserver {
 public:
  // A control channel exists: watch control_fd() for reading, level-triggered, and call on_control_ready().
  virtual void on_session_connecting(ClientSession& session) = 0;
  // Data may flow: watch data_fd() for reading, edge-triggered; being woken is all it is for.
  virtual void on_session_open(ClientSession& session) = 0;
  // Both descriptors are about to close: stop watching. `why` is for the log.
  virtual void on_session_lost(ClientSession& session, const std::string& why, bool was_open) = 0;

 protected:
  ~SessionObserver() = default;
};

// Somebody whose append() was refused for want of credit and who wants to be called when there may be some.
class CreditWaiter {
 public:
  virtual void on_credit() = 0;

 protected:
  ~CreditWaiter() = default;
};

class ClientSession {
 public:
  enum class State : uint8_t { kWaiting, kHandshaking, kOpen };
  using Connect = base::Expected<std::unique_ptr<transport::ClientEndpoint>> (*)(
      const std::string& address, const transport::ConnectOptions& options);

  // `connect` is transport::connect, or a test's.
  ClientSession(const SessionOptions& options, const base::Clock& clock, SessionObserver& observer, Connect connect);
  ~ClientSession();

  // --- set-up and death
  void start();
  void on_control_ready();
  // Time-outs of ops and of set-up, reconnecting. To be called about every kTickNs while needs_tick().
  void tick();
  // Whether silence must be probed: call keep_alive() about every transport::kKeepAliveNs then.
  bool needs_keep_alive() const { return state_ == State::kOpen && endpoint_->limits().needs_keep_alive; }
  void keep_alive() {
    if (needs_keep_alive()) endpoint_->keep_alive();
  }
  bool needs_tick() const { return state_ != State::kOpen || outstanding() > 0 || waits_for_upload_room(); }
  static constexpr uint64_t kTickNs = 20'000'000;
  void close();

  State state() const { return state_; }
  bool is_open() const { return state_ == State::kOpen; }
  // Grows with every session opened: what was begun in another generation is gone.
  uint64_t generation() const { return generation_; }
  int control_fd() const { return endpoint_->control_fd(); }
  int data_fd() const { return endpoint_->data_fd(); }
  const SessionOptions& options() const { return options_; }
  // Address and worker_id stay as they are. Window, queue pairs and secret count from the next session on, everything
  // else at once.
  void set_options(SessionOptions options);
  const wire::Grant& grant() const { return grant_; }       // open only
  std::string facts() const { return endpoint_->facts(); }  // open only

  // --- the data path; open only
  uint64_t hash(std::string_view key) const;
  ClientLane& lane_of(uint64_t hash);
  ClientLane& lane(uint32_t number) { return *lanes_[number]; }
  // Of the lane of `hash`.
  UploadRoom& upload_room(uint64_t hash);
  // When this pass began, by the session's clock.
  uint64_t pass_ns() const { return now_ns_; }
  uint32_t lane_count() const { return static_cast<uint32_t>(lanes_.size()); }
  // Calls back once: in the next pass in which there is credit again, or when the session is lost. First come, first
  // served.
  void wait_for_credit(CreditWaiter* waiter) { credit_waiters_.push_back(waiter); }
  void stop_waiting(const CreditWaiter* waiter);
  // Ops were appended that flush() has not sent.
  bool has_open_messages() const;
  bool is_anybody_waiting() const { return !credit_waiters_.empty(); }
  // Something else that waiters for credit wait for (a turn, a pin) has become free.
  void announce_credit() { credit_came_ = true; }
  // hand_out_credit() has somebody to call.
  bool may_hand_out_credit() const { return credit_came_ && is_anybody_waiting(); }

  // data_fd() was readable: something was delivered. The next pass fetches it.
  void on_data_ready();

  // --- the passes, in the worker's order
  void begin_pass();
  void flush();
  // Fetches what is due and hands out results. Returns whether anything came in.
  bool fetch();
  // Calls those who wait for credit, if there is some again. Returns whether anybody was called.
  bool hand_out_credit();
  // Whether the worker should poll on instead of sleeping. To be asked in every pass before sleeping.
  bool should_spin();
  // Before sleeping: want, fence, one more fetch. False: do not sleep, because something came in or, over a network,
  // the last fetch has not completed yet: go on with passes and ask again.
  bool prepare_sleep();

  uint32_t outstanding() const;
  // Of this session and those before it, lane by lane. Reading is for any thread.
  SessionCounters& counters() { return counters_; }
  const SessionCounters& counters() const { return counters_; }

 private:
  void connect_now();
  uint64_t offered() const;  // features
  void on_frame(std::span<const std::byte> frame);
  void on_challenge(std::span<const std::byte> frame);
  void on_grant(std::span<const std::byte> frame);
  const char* distrust_reason(std::span<const std::byte> frame) const;
  void lose(const std::string& why);
  bool has_credit() const;
  bool waits_for_upload_room() const;
  void stage_fetches();
  const char* poll_events(bool& progress);
  void end_wait(bool paid);

  base::OwnerThread owner_;
  SessionOptions options_;
  const base::Clock& clock_;
  SessionObserver& observer_;
  const Connect connect_;

  State state_ = State::kWaiting;
  uint64_t now_ns_ = 0;       // of this pass
  uint64_t taken_ns_ = 0;     // when results last came in; durations are measured to here, since now_ns_ may be old
  uint64_t deadline_ns_ = 0;  // kWaiting: when to try again; kHandshaking: when to give up
  uint64_t backoff_ns_ = 0;
  uint64_t opened_ns_ = 0;
  bool has_served_ = false;  // since it was opened
  uint64_t generation_ = 0;
  std::unique_ptr<transport::ClientEndpoint> endpoint_;
  wire::Transcript transcript_;  // of the handshake under way, where there is a secret
  bool has_proved_ = false;      // the challenge of this handshake is answered
  wire::Grant grant_;
  SessionCounters counters_;  // of this session and of earlier ones
  std::vector<std::unique_ptr<ClientLane>> lanes_;
  std::vector<UploadRoom> upload_rooms_;  // by lane
  std::deque<CreditWaiter*> credit_waiters_;
  size_t next_fetch_ = 0;  // the lane that may stage reads first, so that none starves when the read depth is small
  bool credit_came_ = false;
  // Local endpoints only: whether the worker polls while it waits for responses. kIdle: it waits for nothing.
  enum class Wait : uint8_t { kIdle, kPolled, kNotPolled };
  Wait wait_ = Wait::kIdle;
  SpinJudge spin_judge_;
  std::array<transport::Event, 64> events_;  // found by one poll(); a member, so that it is not built for each
  std::string failure_;                      // why the endpoint broke
};

}  // namespace egret::rpc
