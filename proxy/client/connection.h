// One client: reads its socket into the worker's scratch memory (large values into request slots, or where the store keeps them,
// if it is this thread's), passes bytes to the Dispatcher, sends what the ReplyQueue produced. Unconsumed input (half a command, or a command that must wait) is kept in a borrowed block; an
// idle connection holds none.
//
//   kOpen ─ client's end, quit, error ──────▶ kDraining (no more reading; answers what was read) ─▶ kDead
//     └─ worker stops ─▶ kLastCall ─ at rest ─▲ or ─▶ handed over ─▶ kDead   └─ stopping ─▶ kLingering ─▶ kDead
//                       write failed, timed out, worker stops late ──────────────────────────────────▶ kDead
//
// A client that sends nothing for a while and for which nothing is under way needs no Connection: rest() leaves its record
// (resting_clients.h), from which a new Connection goes on.
//
// When its worker stops, a client is read and answered until it is at rest: everything is answered and sent, and there
// is no more input. Then the next process takes it over (handover.h), or its output is shut down. In the second case
// the socket is closed only when the client has closed its side, or kLingerNs later: otherwise input that arrives
// meanwhile would reset the connection and lose answers on their way.
//
// Thread: the worker's. The worker destroys dead connections at the end of a pass, never from within a call of theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/counter.h"
#include "events/event.h"
#include "proxy/client/client_socket.h"
#include "proxy/client/connection_table.h"
#include "proxy/client/resting_clients.h"
#include "proxy/client/watch.h"
#include "proxy/commands/dispatcher.h"
#include "proxy/replies/connection_memory.h"
#include "proxy/replies/reply_queue.h"
#include "proxy/worker_context.h"

namespace egret::proxy {

// An accepted client that is being passed to its worker.
struct NewClient {
  base::UniqueFd plain;               // TCP or Unix
  std::unique_ptr<ClientSocket> tls;  // or this one
  bool may_idle = false;              // idle_timeout does not apply
  // Set if another process served this client before.
  std::optional<memcache::ResumeState> resume_state{};
  uint64_t last_active_ns = 0;
};

class Connection final : private ReplyObserver, private CommandObserver {
 public:
  // Goes on as `record` says, which it keeps up to date, and removes when the client goes.
  // The socket is `plain`, or else `tls`.
  Connection(WorkerContext& worker, base::UniqueFd plain, std::unique_ptr<ClientSocket> tls, ConnectionRecord& record);
  ~Connection();

  // The client has sent something while it was at rest.
  void read_at_once() { on_readable(); }
  static constexpr uint64_t kRestAfterNs = 1'000'000'000;
  // kSoon: when it has been quiet for kRestAfterNs. kLater: it waits for its client, or for memory. kNever: TLS has a state,
  // and a watcher is sent lines at any time.
  enum class Rest : uint8_t { kNow, kSoon, kLater, kNever };
  Rest may_rest() const;
  // With kNow: hands the client over to `resting`; then this is destroyed. False: it cannot rest.
  bool rest(RestingClients& resting);

  // The passes, called by the worker.
  void send_output();
  // Slots are about to be reused or freed: copies lent values that lie in them.
  void keep_lent() { output_.keep_lent(); }
  void resume();
  // The worker stops: end this connection as soon as it is at rest.
  void last_call();
  // Another configuration is in force: reads the user's rights again.
  void renew_rights() { dispatcher_.renew_rights(); }
  // Called now and then after last_call(). `is_late`: a connection that is not at rest is not read any more.
  void check_last_call(bool is_late);
  bool is_dead() const { return state_ == State::kDead; }
  // When this client times out if nothing more happens; kNever: not at all.
  static constexpr uint64_t kNever = UINT64_MAX;
  uint64_t times_out_ns() const;
  void time_out();

  // Since when the client has not read any of its large value; kNever: there is none.
  uint64_t stalled_since_ns() const;
  // Since when a command that the client has not sent completely is held in memory; kNever: there is none.
  uint64_t half_a_command_since_ns() const;
  // Disconnects it, because others need the memory that it holds, and counts that.
  void disconnect_stalled(base::Counter& counter);
  // Limits were raised: what waits for memory tries again.
  void retry_for_memory() {
    replies_.on_limits();
    on_progress();
  }

  // In which of the worker's lists of this pass it is.
  bool listed_for_output = false;
  bool listed_for_resume = false;
  size_t index = 0;  // in the worker's table

 private:
  enum class State : uint8_t { kOpen, kLastCall, kDraining, kLingering, kDead, kResting };
  void on_readable();
  void on_retry();
  // Reads no more; dies when all that was read is answered and sent.
  void drain();
  bool may_send() const { return state_ != State::kDead && state_ != State::kLingering && !sending_waits_; }
  bool may_read() const { return state_ == State::kOpen || state_ == State::kLastCall; }
  void read();
  bool read_once();
  bool read_value(const op::PartRoom& room, bool is_all);
  void note_input(size_t bytes);
  void on_no_input(Io io);
  void retry_when(Io io);
  void look_for_held_input();
  bool holds_a_line() const;
  void show_state();
  void keep_rest(std::string_view rest);
  void drop_rest();
  void feed(std::string_view input);
  void pause_reading();
  void resume_reading();
  void wait_for_input();
  void after_feed();
  void die();
  void die_if_drained();
  bool is_at_rest() const;
  void leave();
  bool hand_over();
  void linger();
  void send_if_answered();
  void send_some();
  void on_output() override;
  void on_progress() override;
  void on_observed(const Observed& observed, const op::Result& result) override;
  void on_resumable() override;
  bool on_watch(uint16_t streams) override;
  std::string client_address() const override;
  std::string listen_address() const override { return local_address_text(socket_.fd()); }

  WorkerContext& worker_;
  ConnectionRecord& record_;
  std::optional<PlainSocket> plain_;  // a member, to save an allocation for each client
  const std::unique_ptr<ClientSocket> tls_;
  ClientSocket& socket_;  // one of these
  State state_ = State::kOpen;
  bool is_last_answered_ = false;  // something was sent after last_call()
  uint64_t lingers_until_ns_ = 0;
  GoneBecause goes_because_ = GoneBecause::kError;  // the reason to report if it ended now
  bool reading_ = true;
  bool expects_value_ = false;  // the client sends large values: little is read before the store has room for the next
  bool sending_waits_ = false;  // sending waits for retry_
  bool reading_waits_ = false;
  ConnectionMemory memory_;
  OutputQueue output_;
  ReplyQueue replies_;
  Dispatcher dispatcher_;
  std::unique_ptr<char[]> rest_;  // unconsumed input; null if there is none
  size_t rest_size_ = 0;
  uint64_t rest_since_ns_ = 0;    // when rest_ was allocated
  std::unique_ptr<Watch> watch_;  // set while the client watches
  events::Event readable_;
  events::Event retry_;  // what the socket waits for, mostly to be writable
};

}  // namespace egret::proxy
