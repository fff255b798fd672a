// A whole system in one thread: backend partitions and a control thread, proxy workers, and the network between them; if
// wanted a relay between workers and backend (sim_relay.h).
// All of them are actors; step() lets one of them, drawn from the seed, do one turn of its loop, and time passes.
//
//   SimClient = proxy/worker.cc's loop around a ClientSession       ┐
//   Server    = a backend's partitions and control (server.h)       ├─ World::step(), World::run()
//   Network   = a line of bytes from here to there                  ┘
//
// Between its steps an actor lets others in wherever it calls an endpoint, the clock or its handler (preempt()).
// Single-threaded. What went wrong is in model().failure().
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model.h"
#include "network.h"
#include "rng.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"
#include "server.h"
#include "sim_clock.h"

namespace egret::sim {

struct Scenario {
  NetworkOptions network;
  ModelOptions model;
  rpc::SessionOptions session;
  wire::RegionLayout layout{.lanes = 2, .window = 4, .request_slot_size = 1024, .response_slot_size = 1024};
  uint32_t clients = 2;
  uint32_t ops_per_client = 60;
  uint32_t burst = 8;                 // ops that a client submits at a time, at most
  bool has_two_transports = false;    // clients' addresses are rdma+tcp:
  bool is_one_process = false;        // over kLocal: clients serve the partitions (tools/memcached)
  bool clients_sleep_always = false;  // at every opportunity, else after spin_ns in fetch mode
  bool park_always = false;           // lanes at every opportunity, else after lane_idle_ns
  uint64_t lane_idle_ns = 30'000;
  uint64_t step_max_ns = 200;  // time that a step takes at most
  uint64_t pause_max_ns = 0;   // time that the execution of an op takes at most
  uint32_t preempt_percent = 30;
  uint64_t torn_limit_ns = 1'000'000'000;
  uint32_t item_size_max = 1 << 20;  // the backend's: so many bytes of values in parts a lane has room for
  bool knows_deliver = true;         // the backend; over kShm nobody asks for it
  rpc::PushRules push = {};
  uint64_t tick_ns = rpc::ClientSession::kTickNs;
  // Clients have their sessions with a relay, over shm, and it has one with the backend.
  struct Relayed {
    bool is_on = false;
    uint32_t window = 4;  // of the inbound lanes
    uint32_t request_slot_size = 1024;
    uint32_t response_slot_size = 1024;
    rpc::Growth growth;               // of the outbound session
    uint64_t kept_memory = 16 << 20;  // bytes of RelayOptions
    uint64_t collected_memory = 32 << 20;
  };
  Relayed relayed;
  // Open sessions tick, and when nothing moves, time goes on to the next tick. Else there are no timers that could hide
  // a lost wake-up: when nothing moves, there was one.
  bool time_heals = false;
};

class World;
class SimRelay;

// An actor that a test adds to a world.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void step() = 0;
  virtual bool is_asleep() const = 0;  // it blocks, and no event is there that wakes it
  virtual bool is_finished() const = 0;
  virtual void end() = 0;  // closes its sessions; the last call
  virtual std::string describe() = 0;
};

class SimClient final : public rpc::SessionObserver, public rpc::CreditWaiter {
 public:
  SimClient(World& world, uint32_t number);

  void start() { session_.start(); }
  // One turn of the worker's loop.
  void step();
  // A frozen client does nothing, as if its process were stopped.
  void freeze(bool frozen) { frozen_ = frozen; }
  // It blocks, and nothing is there to wake it.
  bool is_asleep() const;
  bool is_finished() const { return submitted_ == to_submit_; }
  void submit_more(uint32_t ops) { to_submit_ += ops; }
  // Appends some ops, unless it waits for credit or has no session. Also from within a result.
  void submit();
  rpc::ClientSession& session() { return session_; }
  const std::string& address() const { return address_; }
  uint32_t sessions_lost() const { return sessions_lost_; }
  uint64_t sleeps() const { return sleeps_; }
  const std::string& why_lost() const { return why_lost_; }
  uint64_t next_tick_ns() const { return next_tick_ns_; }
  std::string describe();
  // Called once per turn with the session open, where the worker would read its clients' sockets.
  std::function<void()> on_turn;

  egret::base::Status on_session_connecting(rpc::ClientSession&) override { return egret::base::Status::ok(); }
  egret::base::Status on_session_open(rpc::ClientSession&) override { return egret::base::Status::ok(); }
  void on_session_active(rpc::ClientSession& session) override { active_.add(session); }
  void on_session_lost(rpc::ClientSession&, const std::string& why, bool was_open) override;
  void on_credit() override;

 private:
  bool is_control_ready() const;
  bool has_reason_to_wake() const;
  bool is_tick_due() const;
  void run_passes();
  bool poll_partitions();
  bool may_block();

  World& world_;
  const std::string address_;
  const std::vector<Partition*> partitions_;  // that it serves
  rpc::ActiveSessions active_;
  rpc::ClientSession session_;
  uint32_t to_submit_;
  uint32_t submitted_ = 0;
  std::unique_ptr<Model::Draft> draft_;
  bool waiting_for_credit_ = false;
  bool blocked_ = false;
  bool frozen_ = false;
  uint64_t next_tick_ns_ = 0;
  uint32_t sessions_lost_ = 0;
  uint64_t sleeps_ = 0;
  std::string why_lost_;
};

class World {
 public:
  // `make_handler` may put a test's own handler in place of ModelHandler.
  using MakeHandler = std::function<std::unique_ptr<ModelHandler>(World&, uint32_t partition)>;
  World(uint64_t seed, const Scenario& scenario, const MakeHandler& make_handler = {});
  ~World();

  void step();
  // Steps until so much time has passed, or something failed.
  void step_for(uint64_t ns);
  // Steps until all clients have submitted and been answered, or something failed. Nothing moving any more with a
  // waiter unanswered is a lost wake-up and a failure (unless time heals it); so is `max_steps` without an end.
  void run(uint64_t max_steps = 2'000'000);
  // Steps until `done`; false when that did not happen within `max_steps`, or something failed.
  bool run_until(const std::function<bool()>& done, uint64_t max_steps = 2'000'000);
  // Nothing moves any more unless time passes or somebody submits. Lets partitions that poll look once more.
  bool is_quiet();

  // Ends all sessions; nobody is let in any more. The destructor does it otherwise.
  void tear_down();
  void preempt();
  // The turn under way takes this long: meanwhile the others go on.
  void pass_time(uint64_t ns);
  void advance_ns(uint64_t ns) { clock.manual.advance_ns(ns); }

  rpc::LaneCounters client_counters() const;
  rpc::PollerCounters server_counters() const;
  std::string describe() const;
  // One line on stderr for each turn of an actor, when EGRET_SIM_TRACE is set.
  void trace(const std::string& line) const;

  const uint64_t seed;
  const Scenario scenario;
  Rng rng;
  SimClock clock;
  Model model;
  Network network;
  Server server;
  Control& control = server.control;
  std::vector<std::unique_ptr<Partition>>& partitions = server.partitions;
  std::vector<std::unique_ptr<SimClient>> clients;
  std::unique_ptr<SimRelay> relay;             // null: clients have sessions with the backend
  std::vector<std::unique_ptr<Actor>> others;  // added by the test
  std::function<void()> on_step;               // step() calls it before it chooses an actor

 private:
  size_t relay_actor() const { return partitions.size() + clients.size(); }
  size_t actors() const { return relay_actor() + (relay != nullptr ? 1 : 0) + others.size(); }
  void step_actor(size_t actor);
  void step_others();

  const bool tracing_;
  bool skip_to_tick();
  bool seems_quiet() const;

  void check_loans();

  std::vector<ModelHandler*> handlers_;
  std::set<size_t> busy_;  // actors whose turn is under way
};

}  // namespace egret::sim
