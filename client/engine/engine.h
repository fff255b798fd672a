// A client without its C face: sessions with all backends, ops under way, waiting for them, and news of a proxy's pool.
//
//   submit(op) ─ Router ─▶ session ─▶ lane: the open message … poll() … backend … poll(), wait() ─▶ AnswerSink::on_answer
//       └ a value that does not fit a slot: Upload, LargeGet
//
//   sync callers   submit … wait(done) : poll, yield once, or sleep in epoll until something can have come
//   event loops    fd() … arm() … on_ready()
//
// Every submitted op is answered once: with a result, kTimedOut, or kSessionLost (Call::is_unsent says whether it may have
// been executed). No user's function runs inside. What is thrown leaves it unusable: it must not be touched again.
// Thread: the client's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_id.h"
#include "base/unique_fd.h"
#include "client/config/settings.h"
#include "client/engine/call.h"
#include "client/engine/key_order.h"
#include "client/engine/proxy_news.h"
#include "client/engine/router.h"
#include "op/op.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"
#include "rpc/idle/yield_judge.h"

namespace egret::client {

// How submit() went.
enum class Taken : uint8_t {
  kYes,
  kNoCredit,     // wait, and submit again
  kConnecting,   // likewise: the session is being made
  kUnavailable,  // the key's backend cannot be reached now
  kTooLarge,     // more than large_value_memory
};
constexpr bool is_for_later(Taken taken) {
  return taken == Taken::kNoCredit || taken == Taken::kConnecting;
}

class Engine final : private SessionOwner {
 public:
  // Told where keys are, whenever a proxy has told of another pool.
  using OnPool = std::function<void(const pool::Placement&)>;
  Engine(const Settings& settings, const base::Clock& clock, OnPool on_pool = {},
         rpc::ClientSession::Connect connect_to = default_connect());
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A descriptor could not be made: nothing else may be called.
  const base::Status& status() const { return status_; }

  // `op` has a valid key; its hash is filled in here. `stays`: its value need not be copied.
  Taken submit(op::Op& op, AnswerSink& sink, void* context, uint64_t tag, bool stays);
  // One op to each partition of each backend, for ops without a key. Answers come one by one, `count` of them. `missed`:
  // backends that cannot be reached.
  Taken submit_to_all(const op::Op& op, AnswerSink& sink, uint32_t& count, uint32_t& missed);
  // As poll(), but only for backends of this host that are reached straight, so that they work while further ops are encoded.
  // Over a network, and for the proxy's worker, that would not pay for the additional message.
  void begin_on_host();
  uint32_t pending() const { return calls_.in_use(); }
  // Nobody wants the answers of the ops with that tag. Returns of how many.
  uint32_t forget(const AnswerSink& sink, uint64_t tag);

  // One pass: sends what was submitted, wakes lanes that sleep, takes answers; never waits. Returns whether anything came in.
  // kDescriptors: handles events of descriptors, too, for callers that never sleep and have no event loop.
  enum class Look : uint8_t { kMemory, kDescriptors };
  bool poll(Look look = Look::kMemory);
  // Polls, yields and sleeps until done() or, by the clock, deadline_ns. Returns done().
  template <typename Done>
  bool wait(Done done, uint64_t deadline_ns) {
    bool may_yield = true;
    while (!done()) {
      if (poll()) continue;
      if (polls_ % kPollsPerClock == 0 && clock_.now_ns() >= deadline_ns) return done();
      if (should_spin()) continue;
      if (std::exchange(may_yield, false) && yield()) continue;
      if (!active_.prepare_sleep()) continue;
      if (!done()) sleep(deadline_ns);
    }
    return true;
  }
  // Waits until it may be worth to submit again what was for later. False: the deadline.
  bool wait_for_room(uint64_t deadline_ns) {
    const uint64_t before = changes_;
    return wait([&] { return changes_ != before; }, deadline_ns);
  }
  // Begins to make sessions that could be made now. Returns whether one with every backend is open.
  bool connect();
  bool is_connecting() const;

  // --- for event loops
  int fd() const { return epoll_.get(); }
  // Whether fd() will wake for everything that comes, and nothing has come since the call began. False: poll() again.
  bool arm();
  // fd() is readable.
  void on_ready();

  const base::Clock& clock() const { return clock_; }
  uint64_t op_timeout_ns() const { return settings_.session.op_timeout_ns; }
  // Why a session was lost, or could not be made, last.
  const std::string& trouble() const { return trouble_; }
  const Router& router() const { return router_; }
  // Lines for the log, taken away.
  struct Line {
    int level;
    std::string text;
  };
  std::vector<Line> take_log() { return std::exchange(log_, {}); }
  bool has_log() const { return !log_.empty(); }

 private:
  friend class Call;
  friend class Upload;

  struct Watch {
    rpc::ClientSession* session = nullptr;
    int control_fd = -1, data_fd = -1;
    base::FileId control{}, data{};  // the files of both descriptors, as they were when these were watched
    bool is_stale = false;           // they were watched by an epoll that the program has closed since
  };

  // --- calls
  Taken send(op::Op& op, Call& call);
  Taken send_in_parts(const op::Op& op, Call& call, bool stays);
  bool must_wait(const op::Op& op) const;
  void fetch_rest(Call& call, const op::Result& first);
  void on_fetched(Call& call);
  void on_sent(Call& call);
  void answer(Call& call, const op::Result& result);
  void finish(Call& call);
  void drop_parts(Call& call);

  // --- news of a proxy's pool
  void ask_proxy();
  void hear_news();
  void take_over_pool();
  void drop_news();
  void catch_up();
  bool connect_all();

  // --- sessions
  base::Status make_descriptors();
  rpc::ClientSession* make_ready(std::string_view key, Taken& otherwise);
  void tick_if_due();
  void tick_all(uint64_t now_ns);
  bool needs_tick() const;
  bool should_spin();
  bool yield();
  void sleep(uint64_t deadline_ns);
  void look_at_descriptors();
  void handle_events(uint64_t wait_ns);
  void handle(uint64_t event);
  bool is_intact(const Watch& watch) const;
  bool owns_epoll() const;
  void renew_descriptors();
  void look_after_descriptors();
  Watch& watch_of(const rpc::ClientSession& session);
  void close(rpc::ClientSession& session, rpc::ClientSession::State next);
  base::Status watch(int fd, uint32_t events, uint64_t data);
  void unwatch(Watch& watched);
  void unwatch(int& fd, bool is_stale);
  void note(int level, std::string text);

  bool has_ops(const rpc::ClientSession& session) const;
  void on_session_made(rpc::ClientSession& session) override;
  void end_session(rpc::ClientSession& session) override;
  base::Status on_session_connecting(rpc::ClientSession& session) override;
  base::Status on_session_open(rpc::ClientSession& session) override;
  base::Status on_session_resized(rpc::ClientSession& session) override;
  void on_session_active(rpc::ClientSession& session) override { active_.add(session); }
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  void on_session_falls_back(rpc::ClientSession& session, const std::string& why) override;
  bool may_close(const rpc::ClientSession& session) override;

  const Settings settings_;
  const base::Clock& clock_;
  const OnPool on_pool_;
  base::Status status_ = base::Status::ok();
  base::UniqueFd epoll_, timer_;
  // The timer's interval. It never passes (a year); its nanoseconds identify this timer among all of the process.
  const timespec mark_;
  rpc::ActiveSessions active_;
  rpc::YieldJudge yield_judge_;
  KeyOrder order_;
  CallPool calls_;
  std::vector<Watch> watches_;  // of router_'s sessions; one without a session is free
  Router router_;
  std::unique_ptr<ProxyNews> news_;  // null: the backends are given
  int news_fd_ = -1;                 // as it is watched
  base::FileId news_file_;
  bool is_news_stale_ = false;                   // as Watch::is_stale
  const rpc::ClientSession* closing_ = nullptr;  // by this engine, so that its end is no loss
  bool must_turn_ = false;                       // a session is to go by another way
  uint64_t value_memory_ =
      0;  // bytes of values too large for a slot that are being sent or fetched; the settings limit them
  uint32_t next_upload_id_ = 1;
  uint64_t changes_ = 0;  // grows with whatever may let an op be taken
  uint64_t next_tick_ns_ = 0;
  uint64_t next_keep_alive_ns_ = 0;
  static constexpr uint32_t kPollsPerClock = 16;
  uint32_t polls_ = kPollsPerClock - 1;
  bool has_network_ = false;
  uint64_t timer_ns_ = 0;  // how long it runs; 0: it is not set
  std::string trouble_;
  std::vector<Line> log_;
};

}  // namespace egret::client
