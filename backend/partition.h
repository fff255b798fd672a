// One partition's thread: the only reader and writer of its part of the store, and the home of some endpoints.
//
//   mail (attach, detach, rings and deliveries from others) ┐
//   rings of the endpoints whose home this is               ├─▶ SlotPoller ─▶ Executor ─▶ Store
//   request slots of awake lanes                            ┘
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <sys/epoll.h>

#include "backend/executor.h"
#include "backend/mail.h"
#include "backend/seat.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "rpc/slot_poller.h"
#include "rpc/spin_judge.h"

namespace egret::backend {

struct PartitionOptions {
  uint32_t number = 0;
  int cpu = -1;          // to stay on; -1: anywhere
  bool follows = false;  // sits where the worker is that it serves
  PollingRules polling;
};

class Partition final : private rpc::DeliveryRelay {
 public:
  Partition(const PartitionOptions& options, const base::Clock& clock, PostOffice& mail,
            std::unique_ptr<Executor> executor);
  ~Partition() override;

  void start();
  void join();

 private:
  struct HomeEndpoint {
    uint64_t session_id;
    transport::ServerEndpoint* endpoint;
    uint32_t lanes;
    UnderWay* under_way;
  };
  struct AttachedSession {
    uint64_t session_id;
    UnderWay* under_way;
  };

  void run();
  bool read_mail();
  void compare_memory(uint64_t configured) const;
  void attach(const Letter& letter);
  void on_ring(uint64_t session_id);
  void detach(uint64_t session_id);
  void deliver(const Letter& letter);
  void deliver_pending(const HomeEndpoint& home, const wire::RegionLayout& layout, size_t slot);
  UnderWay* under_way_of(uint64_t session_id);
  bool hear_rings();
  bool hear_signals(int patience_ms);
  bool ask(const std::vector<HomeEndpoint>& homes, size_t most);
  bool hear_rings_of(const HomeEndpoint& home);
  const HomeEndpoint* home_of(uint64_t session_id) const;
  void keep_alive();
  void report_broken();
  void report(PartitionReport& report);
  void answer_control(Letter::Kind kind);
  void tell_control(Letter::Kind kind, uint64_t session_id);
  void finish();
  void rest();
  void end_wait(bool paid);
  void sleep();
  int patience_ms() const;
  void relay(const rpc::LaneBinding& lane, size_t offset, size_t length) override;

  PartitionOptions options_;
  const base::Clock& clock_;
  PostOffice& mail_;
  const uint32_t control_;  // the control thread's node
  std::unique_ptr<Executor> executor_;
  rpc::SlotPoller poller_;
  Seat seat_;
  base::UniqueFd epoll_;
  std::vector<HomeEndpoint> homes_;          // by session
  std::vector<HomeEndpoint> asked_homes_;    // of these, those that tell of a ring only when they are asked
  size_t next_home_ = 0;                     // where ask() goes on
  uint32_t deaf_rounds_ = 0;                 // since hear_signals()
  std::array<epoll_event, 64> signals_;      // of one such look
  std::array<transport::Event, 16> events_;  // of one endpoint; here, so that it need not be made for each poll
  size_t silent_homes_ = 0;                  // of homes_, those whose peers' deaths must be probed for
  uint64_t next_probe_ns_ = 0;
  uint32_t rounds_ = 0;
  uint32_t busy_rounds_ = 0;
  std::vector<AttachedSession> sessions_;  // by number
  uint32_t empty_rounds_ = 0;
  rpc::SpinJudge spin_judge_;
  bool polls_on_ = false;  // through the empty rounds that have begun: local lanes are not put to sleep at once
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace egret::backend
