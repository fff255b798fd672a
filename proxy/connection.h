// One client's socket: reads into the worker's scratch memory, hands bytes to the Dispatcher, sends what the ReplyQueue
// produced. What is left over (half a command, or a command that must wait) is kept in a borrowed block, so an idle
// connection holds none.
//
//   kOpen ─ client's end, quit, error ──────▶ kDraining (no more reading; what is under way is answered) ─▶ kDead
//     └─ worker stops ─▶ kLastCall ─ read to the end ─▲
//                                 write failed, worker stops late ──────────────────────────────────────▶ kDead
//
// Thread: the worker's. The worker destroys dead connections at the end of a pass, never from within a call of theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/unique_fd.h"
#include "proxy/dispatcher.h"
#include "proxy/output_queue.h"
#include "proxy/proxy_stats.h"
#include "proxy/reply.h"

struct event;
struct event_base;

namespace egret::proxy {

class Connection;

// What connections share: their worker's.
struct ConnectionHost {
  virtual void begin_pass() = 0;  // the clock of this pass is read, once
  virtual void has_output(Connection& connection) = 0;
  virtual void may_resume(Connection& connection) = 0;
  virtual void has_died(Connection& connection) = 0;

  event_base* events = nullptr;
  Router* router = nullptr;
  ReplyPool* replies = nullptr;
  BlockPool* output_blocks = nullptr;
  BlockPool* input_blocks = nullptr;
  LargeValueBudget* large_values = nullptr;
  ByteBudget* collected_values = nullptr;
  const StatsSource* stats_source = nullptr;
  WorkerStats* stats = nullptr;
  char* scratch = nullptr;  // as large as an input block
  uint32_t next_upload_id = 1;
  memcache::Limits limits;

 protected:
  ~ConnectionHost() = default;
};

class Connection final : private ReplyObserver, private DispatchObserver {
 public:
  Connection(ConnectionHost& host, base::UniqueFd socket);
  ~Connection();

  // The passes, called by the worker.
  void send_output();
  void resume();
  // The worker stops: what the client has sent up to now is still read and answered, then the connection dies.
  void last_call();
  bool is_dead() const { return state_ == State::kDead; }

  // Where the worker keeps it in its lists of this pass.
  bool listed_for_output = false;
  bool listed_for_resume = false;
  size_t index = 0;  // in the worker's table

 private:
  enum class State : uint8_t { kOpen, kLastCall, kDraining, kDead };
  struct EventDeleter {
    void operator()(event* e) const;
  };
  using EventPtr = std::unique_ptr<event, EventDeleter>;

  static void on_readable(int, short, void* self);
  static void on_writable(int, short, void* self);
  // Reads no more; dies when what is under way has been answered and sent.
  void drain();
  bool may_read() const { return state_ == State::kOpen || state_ == State::kLastCall; }
  void read();
  bool read_once();
  void keep_rest(std::string_view rest);
  void feed(std::string_view input);
  void pause_reading();
  void resume_reading();
  void after_feed();
  void die();
  void die_if_drained();
  void on_output() override { host_.has_output(*this); }
  void on_progress() override;
  void on_resumable() override { host_.may_resume(*this); }

  ConnectionHost& host_;
  base::UniqueFd socket_;
  State state_ = State::kOpen;
  bool reading_ = true;
  bool writable_awaited_ = false;
  OutputQueue output_;
  ReplyQueue replies_;
  Dispatcher dispatcher_;
  std::unique_ptr<char[]> rest_;  // unconsumed input; null when there is none
  size_t rest_size_ = 0;
  EventPtr readable_;
  EventPtr writable_;
};

}  // namespace egret::proxy
