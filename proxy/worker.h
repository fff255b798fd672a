// One worker thread: its client connections, its session with each backend, and the loop that moves everything on.
//
//   sockets → parse, append │ flush sessions │ fetch results │ hand out credit, resume │ send answers │ bury the dead │
//   sleep?
//
// Nothing is shared with other workers but counters. New connections, the news that there is another configuration, and
// the wish to stop come by the inbox.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/unique_fd.h"
#include "base/watchdog.h"
#include "pool/pool.h"
#include "proxy/client/connection.h"
#include "proxy/config.h"
#include "proxy/replies/reply.h"
#include "proxy/report/proxy_stats.h"

namespace egret::proxy {

class Worker final : public ConnectionHost, public rpc::SessionObserver {
 public:
  // Under the configuration that `stats_source` holds.
  Worker(uint32_t number, const base::Clock& clock, const StatsSource& stats_source, base::Watchdog& watchdog);
  ~Worker();

  void start();
  // Any thread: a client for this worker.
  void give(NewClient client);
  // Any thread: another configuration is in force.
  void reload();
  // Any thread: answer what clients have sent, at most `patience_ns`, hand over those that can go on, then end.
  void stop(uint64_t patience_ns);
  void join();
  // Any thread: looks into the inbox, and so answers the watchdog.
  void wake();
  // Any thread: whether every backend has been reached once.
  bool is_settled() const { return settled_.load(std::memory_order_acquire); }

 private:
  struct EventDeleter {
    void operator()(event* e) const;
    void operator()(event_base* base) const;
  };
  using EventPtr = std::unique_ptr<event, EventDeleter>;
  struct SessionEvents {
    EventPtr control;
    EventPtr data;
  };

  void run();
  void add_session(const Backend& backend);
  void wait_for_events();
  bool may_block();
  bool is_quiet();
  void run_passes();
  void flush_sessions();
  bool fetch_results();
  bool resume_connections();
  void send_answers();
  void bury_dead();
  void return_memory();
  void keep_ticking();
  void on_tick();
  void on_keep_alive();
  bool needs_tick() const;
  void take_in(NewClient client);
  void take_config();
  void look_after(uint64_t ends_ns);
  void on_patience();
  void read_inbox();
  void last_call();
  bool is_finished();

  void begin_pass() override;
  void has_output(Connection& connection) override;
  void may_resume(Connection& connection) override;
  void has_died(Connection& connection) override;

  void on_session_connecting(rpc::ClientSession& session) override;
  void on_session_open(rpc::ClientSession& session) override;
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  size_t index_of(const rpc::ClientSession& session) const;

  const uint32_t number_;
  const std::vector<int> cpus_ = base::allowed_cpus();
  const base::Clock& clock_;
  base::Watchdog& watchdog_;
  std::unique_ptr<event_base, EventDeleter> base_;
  BlockPool output_pool_;
  BlockPool input_pool_;
  ReplyPool reply_pool_;
  std::unique_ptr<char[]> scratch_memory_;
  pool::Pool router_storage_;
  LargeValueBudget get_budget_;
  ByteBudget set_budget_;
  std::vector<SessionEvents> session_events_;
  EventPtr tick_;
  EventPtr keep_alive_;                             // pending while a session needs it
  EventPtr patience_event_;                         // pending while a client may run out of it
  uint64_t patience_ends_ns_ = Connection::kNever;  // when it goes off
  EventPtr return_memory_;                          // pending for a while after connections were destroyed
  EventPtr inbox_event_;
  bool pass_begun_ = false;
  bool ticking_ = false;
  bool buried_ = false;  // connections were destroyed after the last pass

  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> with_output_;
  std::vector<Connection*> resumable_;
  std::vector<Connection*> dead_;

  // The inbox: other threads put things in, under the mutex, and wake us.
  base::UniqueFd wake_fd_;
  std::mutex inbox_mutex_;
  std::vector<NewClient> inbox_clients_;
  bool inbox_reload_ = false;
  uint64_t inbox_stop_ns_ = 0;  // patience; 0: go on
  uint64_t stop_deadline_ns_ = 0;
  uint64_t stop_reading_ns_ = 0;  // from then on only what has been read is answered
  std::atomic<bool> settled_{false};
  uint32_t unsettled_ = 0;
  std::thread thread_;
};

}  // namespace egret::proxy
