// One partition of the server: a thread that owns one lane of every session, is home to some sessions' endpoints, and
// sleeps at every opportunity.
//
//   request slot ──look──> execute ──publish──> response slot          (the client READs it)
//                                      └─ full fence ─ want? ──> home's queue + eventfd ──> home: WRITE_WITH_IMM
//   completion queue (home) ──ring, lane──> owner's flag + eventfd ──> owner: the lane is awake again
//
// A lane is awake (looked at in every pass) or asleep (its response slot says so, and only a ring wakes it). A
// partition whose lanes are all asleep blocks in epoll, without a timer, on its eventfd and on the channels of its
// endpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scenario.h"
#include "session.h"

namespace egret::handshakes {

// A result that another partition wants pushed through this home.
struct Push {
  uint32_t session;
  uint32_t slot;
};

// Single producer, single consumer. It cannot overflow: a slot is in it at most once (ServerLane::push_queued).
class PushQueue {
 public:
  explicit PushQueue(size_t capacity) : entries_(capacity) {}
  void push(Push entry);  // the producer
  bool pop(Push& entry);  // the consumer

 private:
  std::vector<Push> entries_;
  std::atomic<uint64_t> head_{0}, tail_{0};
};

class Partition {
 public:
  Partition(const Scenario& scenario, uint32_t id, std::span<const std::unique_ptr<Session>> sessions);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  void meet(std::span<const std::unique_ptr<Partition>> all) { all_ = all; }
  void run();                                          // the thread; returns after stop()
  void stop();                                         // any thread
  bool is_blocked() const { return blocked_.load(); }  // any thread, for the report of a loss
  const Counters& counters() const { return counters_; }

  // Called by another partition's thread.
  void ring_from_home(uint32_t session);                  // this partition's lane of that session
  void push_through(uint32_t from_partition, Push push);  // this partition is the session's home

 private:
  // The lane of one session that this partition owns.
  struct ServerLane {
    Session* session = nullptr;
    uint64_t expected = 1;  // the next seq
    bool awake = true;
    std::atomic<bool> rung{false};               // set by the home, taken by the owner
    std::vector<std::atomic<bool>> push_queued;  // per slot of the window: in the home's queue, not yet posted
  };

  // The phases of a pass; each says whether it found something to do.
  bool poll_endpoints();
  bool take_rings();
  bool serve_lanes();
  bool take_pushes();
  void sleep();

  bool serve_one(ServerLane& lane);
  void publish(ServerLane& lane, const Message& response);
  void write_response(std::byte* to, const Message& response);
  void park(ServerLane& lane);
  bool request_is_there(const ServerLane& lane);  // whole; if so, a copy is in request_
  bool look_again_after_arming();
  void block();
  bool any_lane_awake() const;
  void wake_up();
  void empty_eventfd();

  const Scenario& scenario_;
  const uint32_t id_;
  Pauses pauses_;
  std::vector<ServerLane> lanes_;                   // by session
  std::vector<Session*> homed_;                     // sessions whose endpoint is at home here
  std::vector<uint32_t> pushes_in_flight_;          // by session; bounded by kMaxPushesInFlight
  std::vector<std::unique_ptr<PushQueue>> pushes_;  // by the partition that fills it
  std::span<const std::unique_ptr<Partition>> all_;
  int eventfd_, epoll_;
  std::atomic<bool> stop_{false}, blocked_{false};
  Message request_, response_;
  Counters counters_;
};

}  // namespace egret::handshakes
