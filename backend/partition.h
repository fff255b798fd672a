// One partition: its thread alone reads and writes its part of the store. It is the home of some endpoints: of these, it
// alone polls for rings and pushes deliveries. Where each lane has a ring, every partition is the home of its own lane.
//
//   messages (attach, detach, rings and deliveries from others) ┐
//   rings of the endpoints whose home this is                   ├─▶ SlotPoller ─▶ Executor ─▶ Store
//   request slots of awake lanes                                ┘
//
// It has a thread of its own (start, join), or is driven by one that has other work beside it:
//
//   begin ─▶ { poll … prepare_sleep? ─▶ the thread blocks ─▶ on_message, on_signal } ─▶ is_stopped? finish
//
// It blocks until message_fd() or wait_fd() is readable, or upkeep is due.
//
// A client of that thread (transport::SameProcess) has its lane served within its flush.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <sys/epoll.h>

#include "backend/cpu_follower.h"
#include "backend/executor.h"
#include "backend/mailbox.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "rpc/idle/spin_judge.h"
#include "rpc/slot_poller.h"

namespace egret::backend {

struct PartitionOptions {
  uint32_t number = 0;
  int cpu = -1;          // to stay on; -1: anywhere
  bool follows = false;  // runs on the CPU of the worker that it serves (cpu_follower.h)
  PollingRules polling;
  transport::PollGroup* group = nullptr;  // of this thread; outlives it. Null: every endpoint is polled by itself
};

class Partition final : private rpc::DeliveryRelay, private transport::ReadyListener {
 public:
  // Throws std::system_error if the system has no descriptors for it.
  Partition(const PartitionOptions& options, const base::Clock& clock, Mailboxes& mailboxes,
            std::unique_ptr<Executor> executor);
  ~Partition() override;

  // Throws std::system_error if there is no thread to be had; then there is nothing to join.
  void start();
  void join();

  // --- driven: by one thread, all of these
  void begin();
  // One round. Whether it did something.
  bool poll();
  // A round found nothing: whether the thread may block. Not yet: it is to poll again.
  bool prepare_sleep();
  // message_fd() is for edge-triggered waiting and is never read; wait_fd() is level-triggered. When one is readable, the
  // matching on_...() makes the next poll() look there. Each op of another thread brings a message: were message_fd() in the
  // epoll behind wait_fd(), each would cost one more epoll_wait().
  int message_fd() const { return mailboxes_.wake_fd(options_.number); }
  void on_message() { has_messages_ = true; }
  int wait_fd() const { return epoll_.get(); }
  void on_signal() { is_signalled_ = true; }
  // Until when, by the clock, the thread may block; UINT64_MAX: for ever.
  uint64_t sleeps_until_ns() const;
  bool is_stopped() const { return stopping_; }
  // Before the process ends: answers what peers have already sent, and gives them some time to fetch the results.
  void finish();

 private:
  // A lane whose client is this very thread.
  struct FlushedLane final : transport::FlushServer {
    FlushedLane(Partition& of, rpc::LaneId lane, uint64_t session)
        : partition(of), id(lane), session_id(session), direct(*of.executor_, lane) {}
    void on_flush() override { partition.poller_.serve(id); }
    void on_ring() override;
    op::DirectStore* direct_store() override { return &direct; }
    Partition& partition;
    const rpc::LaneId id;
    const uint64_t session_id;
    Executor::DirectLane direct;
  };
  struct HomeEndpoint {
    uint64_t session_id;
    transport::ServerEndpoint* endpoint;
    uint32_t lanes;
    UnderWay* under_way;
    bool is_unsent = false;   // it is in unsent_
    bool is_blocked = false;  // its peer does not take all now: its descriptor is watched for writing, too
  };
  struct AttachedSession {
    uint64_t session_id;
    UnderWay* under_way;
    bool is_pushed;
    transport::SameProcess* same_process = nullptr;  // where it is served at its client's flush
    std::unique_ptr<FlushedLane> at_flush{};
  };

  void run();
  bool read_messages();
  void compare_memory(uint64_t configured) const;
  void attach(const Message& message);
  void attach_lane(const Message& message);
  void on_ring(uint64_t session_id);
  void detach(uint64_t session_id);
  void deliver(const Message& message);
  void deliver_pending(HomeEndpoint& home, const wire::RegionLayout& layout, size_t slot);
  UnderWay* under_way_of(uint64_t session_id);
  bool poll_rings();
  bool poll_alone();
  bool poll_group();
  bool poll_signals(int patience_ms);
  bool poll_some(const std::vector<HomeEndpoint>& homes, size_t most);
  bool poll_rings_of(const HomeEndpoint& home);
  void take_events(const HomeEndpoint& home, std::span<const transport::Event> events);
  HomeEndpoint* home_of(uint64_t session_id);
  const HomeEndpoint* home_of(uint64_t session_id) const;
  void push(HomeEndpoint& home, uint32_t lane, size_t offset, size_t length, std::span<const transport::Piece> pieces);
  void flush_unsent();
  void flush(HomeEndpoint& home);
  void keep_alive();
  void report_broken();
  void report(PartitionReport& report);
  void answer_control(Message::Kind kind);
  void tell_control(Message::Kind kind, uint64_t session_id);
  void rest();
  bool is_at_rest();
  void after_round(bool served);
  void end_wait(bool paid);
  void sleep();
  int patience_ms() const;
  void relay(const rpc::LaneBinding& lane, size_t offset, size_t length,
             std::span<const transport::Piece> pieces) override;
  bool sends_pieces(const rpc::LaneBinding& lane) const override;
  void on_ready(uint64_t session_id) override { ready_homes_.push_back(session_id); }
  bool watch(int fd, uint32_t events, uint64_t session_id);
  int ring_fd(const transport::ServerEndpoint& endpoint) const;

  base::OwnerThread owner_;  // the thread of run()
  PartitionOptions options_;
  const base::Clock& clock_;
  Mailboxes& mailboxes_;
  const uint32_t control_;  // the control thread's node
  std::unique_ptr<Executor> executor_;
  rpc::SlotPoller poller_;
  CpuFollower cpu_follower_;
  base::UniqueFd epoll_;
  std::vector<HomeEndpoint> homes_;          // by session
  std::vector<HomeEndpoint> lone_homes_;     // those of homes_ that are not in options_.group
  std::vector<HomeEndpoint> polled_homes_;   // those of lone_homes_ that do not signal rings and must be polled
  std::vector<uint64_t> ready_homes_;        // sessions of homes_ for which the group has something
  size_t next_home_ = 0;                     // which one poll_some() polls next
  uint32_t rounds_unpolled_ = 0;             // since poll_signals()
  std::array<epoll_event, 64> signals_;      // found by one epoll_wait()
  std::array<transport::Event, 16> events_;  // found by one poll(); a member, so that it is not built for each
  std::vector<uint64_t> unsent_;             // sessions of homes_ to which something was pushed, and is not sent yet
  uint32_t unflushed_rounds_ = 0;            // since they were sent; undriven only
  size_t pushed_homes_ = 0;                  // those of homes_ that show requests at their descriptors only
  size_t pushed_sessions_ = 0;               // those of sessions_ whose lanes sleep whenever they have no request
  size_t silent_homes_ = 0;  // those of homes_ whose peers must be probed to find out that they are dead
  uint64_t next_probe_ns_ = 0;
  uint32_t rounds_ = 0;
  uint32_t busy_rounds_ = 0;
  std::vector<AttachedSession> sessions_;  // by number
  uint32_t empty_rounds_ = 0;
  rpc::SpinJudge spin_judge_;
  bool polls_on_ =
      false;  // in the present empty rounds lanes of local clients are polled on, and not put to sleep at once
  bool stopping_ = false;
  bool is_driven_ = false;
  bool is_signalled_ = false;  // driven: signals may be there
  bool has_messages_ = false;  // messages may be there; a thread of its own looks for them in every round anyhow
  std::thread thread_;
};

}  // namespace egret::backend
