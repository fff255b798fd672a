// One client: reads its socket into the worker's scratch memory, hands bytes to the Dispatcher, sends what the
// ReplyQueue produced. What is left over (half a command, or a command that must wait) is kept in a borrowed block, so
// an idle connection holds none.
//
//   kOpen ─ client's end, quit, error ──────▶ kDraining (no more reading; what is under way is answered) ─▶ kDead
//     └─ worker stops ─▶ kLastCall ─ at rest ─▲ or ─▶ handed over ─▶ kDead   └─ stopping ─▶ kLingering ─▶ kDead
//                       write failed, timed out, worker stops late ──────────────────────────────────▶ kDead
//
// When its worker stops, a client is read and answered until it is at rest: everything is answered, sent, and no more
// is there. Then it goes over to the next process (handover.h), or is told the end; and so that nothing that it sends
// meanwhile turns the answers on their way into a reset, its socket is closed only when it has ended, too, or a while
// later.
//
// Thread: the worker's. The worker destroys dead connections at the end of a pass, never from within a call of theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "events/event.h"
#include "proxy/client/client_socket.h"
#include "proxy/client/connection_table.h"
#include "proxy/client/watch.h"
#include "proxy/commands/dispatcher.h"
#include "proxy/replies/connection_memory.h"
#include "proxy/replies/reply_queue.h"
#include "proxy/worker_context.h"

namespace egret::proxy {

// A client that was accepted, on its way to its worker.
struct NewClient {
  std::unique_ptr<ClientSocket> socket;
  std::string peer;  // as address_text()
  std::string listen;
  bool may_idle = false;  // idle_timeout is not for it
  // Of one that another process has served before.
  std::optional<memcache::Standing> standing{};
  uint64_t last_active_ns = 0;
};

class Connection final : private ReplyObserver, private CommandObserver {
 public:
  Connection(WorkerContext& worker, NewClient client);
  ~Connection();

  // The passes, called by the worker.
  void send_output();
  // Slots are about to go: what is lent of them is copied.
  void keep_lent() { output_.keep_lent(); }
  void resume();
  // The worker stops: the connection is to go as soon as it can.
  void last_call();
  // Called now and then afterwards. `is_late`: what is not at rest by now is not read any more.
  void hurry(bool is_late);
  bool is_dead() const { return state_ == State::kDead; }
  // When this client runs into a timeout if it goes on as it does; kNever: not at all.
  static constexpr uint64_t kNever = UINT64_MAX;
  uint64_t times_out_ns() const;
  void time_out();

  // Since when a large value waits for a client that takes none of it; kNever: none does.
  uint64_t stalled_since_ns() const;
  // Others need the room of that value.
  void disconnect_stalled();

  // Where the worker keeps it in its lists of this pass.
  bool listed_for_output = false;
  bool listed_for_resume = false;
  size_t index = 0;  // in the worker's table

 private:
  enum class State : uint8_t { kOpen, kLastCall, kDraining, kLingering, kDead };
  void on_readable();
  void on_retry();
  // Reads no more; dies when what is under way has been answered and sent.
  void drain();
  bool may_send() const { return state_ != State::kDead && state_ != State::kLingering && !sending_waits_; }
  bool may_read() const { return state_ == State::kOpen || state_ == State::kLastCall; }
  void read();
  bool read_once();
  void retry_when(Io io);
  void look_for_held_input();
  bool holds_a_line() const;
  void show_state();
  void keep_rest(std::string_view rest);
  void feed(std::string_view input);
  void pause_reading();
  void resume_reading();
  void after_feed();
  void die();
  void die_if_drained();
  bool is_at_rest() const;
  void leave();
  bool hand_over();
  void linger();
  void send_some();
  void on_output() override;
  void on_progress() override;
  void on_observed(const Observed& observed, const op::Result& result) override;
  void on_resumable() override;
  bool on_watch(uint16_t streams) override;

  WorkerContext& worker_;
  std::unique_ptr<ClientSocket> socket_;
  const bool may_idle_;
  State state_ = State::kOpen;
  bool is_last_answered_ = false;  // something was sent after the last call
  uint64_t lingers_until_ns_ = 0;
  GoneBecause goes_because_ = GoneBecause::kError;  // if it went now
  bool reading_ = true;
  bool sending_waits_ = false;  // for retry_
  bool reading_waits_ = false;
  ConnectionMemory memory_;
  OutputQueue output_;
  ReplyQueue replies_;
  Dispatcher dispatcher_;
  std::unique_ptr<char[]> rest_;  // unconsumed input; null when there is none
  size_t rest_size_ = 0;
  std::unique_ptr<Watch> watch_;  // the client watches
  events::Event readable_;
  events::Event retry_;  // what the socket asked for in order to go on; mostly that it be writable
  ConnectionRecord record_;
};

}  // namespace egret::proxy
