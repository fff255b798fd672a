// One worker thread: its client connections, its session with each backend, and its loop.
//
//   read sockets, parse, append ops ─▶ flush sessions ─▶ fetch results ─▶ hand out credit, resume connections
//       ─▶ send answers ─▶ destroy closed connections ─▶ sleep, if nothing is left to do
//
// Workers share only counters. New connections, a new configuration and the request to stop come through the inbox.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/service/watchdog.h"
#include "base/unique_fd.h"
#include "events/event.h"
#include "pool/gutter/lister.h"
#include "pool/warm/fence.h"
#include "proxy/client/clients.h"
#include "proxy/loop_poller.h"
#include "proxy/slots/host_door.h"
#include "proxy/slots/slot_sessions.h"
#include "proxy/worker_context.h"

namespace egret::proxy {

class Worker final : public rpc::SessionObserver {
 public:
  // Uses the configuration in force of `proxy`. `poller`: what else its thread drives; it outlives the worker. Throws
  // std::system_error if the system has no descriptors left.
  Worker(uint32_t number, const base::Clock& clock, ProxyState& proxy, base::Watchdog& watchdog,
         LoopPoller* poller = nullptr);
  ~Worker();

  // Throws std::system_error if there is no thread to be had; then there is nothing to join.
  void start();
  // Any thread: a client for this worker.
  void give(NewClient client);
  // Any thread: a session of a slot client for this worker.
  void give_slots(NewSlotSession session);
  // Any thread: another configuration is in force, or other members.
  void reload();
  // Any thread: answer what clients have sent, for at most `drain_ns`; hand over clients that can continue; then end.
  void stop(uint64_t drain_ns);
  void join();
  // Any thread: makes the worker read its inbox, and so answer the watchdog.
  void wake();
  // Any thread: whether a session with every backend has been open once.
  bool is_settled() const { return settled_.load(std::memory_order_acquire); }
  // Any thread: the latest snapshot of health that was taken; and the latest since which all that was sent to the gutter
  // before has been answered.
  uint64_t taken_health() const { return taken_health_.load(std::memory_order_acquire); }
  uint64_t fenced_health() const { return fenced_health_.load(std::memory_order_acquire); }
  // Any thread: ask the gutter which owners' keys were changed there; the answer goes to ProxyState::gutter_listing.
  void ask_gutter();
  // Any thread: whether its keys go by the one membership, and there has been an open session with each member of the
  // other, and with those that had left before nothing is under way any more.
  bool is_prepared(uint64_t applied, uint64_t joining) const {
    return applied_.load(std::memory_order_acquire) == applied && prepared_.load(std::memory_order_acquire) == joining;
  }
  // Any thread: the latest membership of a warm phase by which its keys go, and since when all that was under way by the
  // one before is answered.
  uint64_t fenced_version() const { return fenced_version_.load(std::memory_order_acquire); }

 private:
  struct SessionEvents {
    events::Event control;
    events::Event data;
    std::string why_fallback;  // why the preferred transport could not be had last; empty: it was not needed
  };
  using SessionEventsOf = std::unordered_map<const rpc::ClientSession*, SessionEvents>;

  void run();
  std::unique_ptr<rpc::ClientSession> make_session(const pool::Membership::Entry& member);
  void take_membership();
  void take_health();
  void note_health();
  void note_fence();
  void note_answers();
  void start(const std::vector<rpc::ClientSession*>& sessions);
  void take_warm_phase(bool is_applied);
  void tell_if_fenced();
  void tell_if_prepared();
  void tell_control();  // what of these two it waits for
  void let_leave();
  void wait_for_events();
  bool may_block();
  bool prepare_sleep();
  void run_passes();
  bool move_requests(uint64_t until_ns);
  bool poll_slots();
  bool has_appended() const;
  bool resume_connections();
  void keep_ticking();
  void on_tick();
  void on_keep_alive();
  base::Status watch_data(rpc::ClientSession& session);
  void forget_endpoint(rpc::ClientSession& session);
  base::Status watch_next_endpoint(rpc::ClientSession& session);
  void log_fallback(const rpc::ClientSession& session, const std::string& why);
  bool needs_tick() const;
  void take_in(NewSlotSession session);
  void take_in_worker(NewSlotSession session);
  void open_host_door();
  void leave_other_workers();
  void read_inbox();
  bool is_finished();

  base::Status on_session_connecting(rpc::ClientSession& session) override;
  base::Status on_session_open(rpc::ClientSession& session) override;
  base::Status on_session_resized(rpc::ClientSession& session) override;
  void on_session_not_resized(rpc::ClientSession& session, const std::string& why) override;
  void on_session_active(rpc::ClientSession& session) override { context_.active.add(session); }
  void on_session_lost(rpc::ClientSession& session, const std::string& why, bool was_open) override;
  void on_session_falls_back(rpc::ClientSession& session, const std::string& why) override;
  base::Status on_session_returned(rpc::ClientSession& session) override;
  void on_session_not_returned(rpc::ClientSession& session, const std::string& why) override;
  void on_session_timeout(rpc::ClientSession& session) override;

  const uint32_t number_;
  const std::vector<int> cpus_ = base::allowed_cpus();
  base::Watchdog& watchdog_;
  LoopPoller* const poller_;  // null: there is nothing else
  events::EventLoop loop_;
  SessionEventsOf session_events_;  // outlives the sessions
  WorkerContext context_;
  events::Event tick_;
  events::Event keep_alive_;  // pending while a session needs it
  events::Event inbox_event_;
  bool ticking_ = false;
  bool must_tick_ = false;     // a session may have to connect, or to give up connecting
  bool destroyed_ = false;     // connections were destroyed after the last pass
  bool is_cut_short_ = false;  // there may be more to move than the last pass moved

  Clients clients_{context_};
  std::unique_ptr<SlotSessions> slots_;  // null: there has been no slot client, nor another worker
  std::unique_ptr<HostDoor> host_door_;  // null: every worker has its own sessions

  // The inbox: other threads write to it, under the mutex, and wake us.
  base::UniqueFd wake_fd_;
  std::mutex inbox_mutex_;
  std::vector<NewClient> inbox_clients_;
  std::vector<NewSlotSession> inbox_slots_;
  bool inbox_reload_ = false;
  uint64_t inbox_stop_ns_ = 0;  // how long to drain; 0: do not stop
  uint64_t stop_deadline_ns_ = 0;
  uint64_t stop_reading_ns_ = 0;  // from then on nothing more is read from clients
  std::atomic<bool> settled_{false};
  std::atomic<uint64_t> applied_{0}, prepared_{0};  // versions; another one is applied: prepared_ is 0 before
  std::atomic<uint64_t> taken_health_{0}, fenced_health_{0};
  pool::Fence gutter_fence_;
  std::atomic<uint64_t> fenced_version_{0};
  bool is_warm_fencing_ = false;
  bool is_preparing_ = false;  // for the members that shall be, which are not in force
  bool is_fencing_ = false;
  std::atomic<bool> wants_listing_{false};
  pool::Lister lister_;
  bool is_listing_ = false;
  std::thread thread_;
};

}  // namespace egret::proxy
