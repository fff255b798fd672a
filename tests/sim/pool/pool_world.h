// Several proxies with a pool each, several backends that execute ops as egret-backend does, and the network between
// them, in one thread. Who does something next is drawn from the seed; so is what goes wrong.
//
//   SimProxy (pool::Pool, sessions, clients) ─ paths "b1@p0" ─ Network ─ SimBackend (Server with real executors and stores)
//                       └───────────────── every request and answer ─────────────────▶ History (what may be read)
//
// A backend stops, comes back empty or with its data; a path is cut in one or both directions; members change, in each
// proxy at a moment of its own. What of that a run may meet is its scenario's.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "history.h"
#include "network.h"
#include "rng.h"
#include "server.h"
#include "sim_clock.h"
#include "sim_events.h"
#include "sim_proxy.h"

namespace egret::sim {

struct PoolScenario {
  NetworkOptions network;
  Registers registers = Registers::kPerCopy;
  uint32_t backends = 3;
  uint32_t gutter = 0;            // so many more, who stand in for absent owners
  uint32_t members_at_first = 0;  // the first of them; 0: all
  uint32_t proxies = 2;
  uint32_t workers = 1;      // of each proxy
  uint32_t connections = 2;  // of each worker
  uint32_t requests = 40;    // of each connection, and as many again when all is well at the end
  uint32_t depth = 6;        // requests of a connection without an answer, at most
  uint32_t keys = 10;
  bool uploads = true;
  pool::PlacementRule rule = pool::PlacementRule::kKetama;
  wire::RegionLayout layout{.lanes = 2, .window = 4, .request_slot_size = 1024, .response_slot_size = 1024};
  rpc::SessionOptions session;
  // Events of each kind, one chance in so many steps; 0: none.
  uint32_t steps_to_change = 0;   // other members, which the proxies learn of one after the other
  uint32_t steps_to_failure = 0;  // a backend stops, a path is cut, a session ends
  // Backends are told of a change before keys go by it (pool::Teller); those that do not answer are waited for so long.
  bool tells = false;
  uint64_t patience_ns = 100'000;
  // Values are brought to the owners of keys that moved (pool::Pulls), for so long after a change. 0: never.
  uint64_t warm_ns = 0;
  uint32_t most_changes = UINT32_MAX;  // of the members, as they should be
  // Members are judged and ejected (pool::HealthJudge).
  bool judges = false;
  pool::HealthOptions health{.probe_first_ns = 20'000, .probe_most_ns = 200'000};
  bool hurried = false;  // keys may go by new members before there are sessions with them
  // The first proxy never reaches the first backend. When all is asked, the others learn what it has changed
  // (pool::Looks), and as much is asked again.
  bool looks = false;
  bool gutter_changes = false;  // its members change with the others
  uint64_t tick_ns = 10'000;
  uint32_t preempt_percent = 15;
};

class PoolWorld;

struct SimBackend {
  std::string address;
  std::unique_ptr<Server> server;                     // null: it is down
  std::vector<std::unique_ptr<rpc::OpHandler>> kept;  // the executors of a process that ended
  uint64_t hash_seed = 0;
};

// What a run has met.
struct PoolCounters {
  uint64_t changes = 0;        // of the members of a proxy
  uint64_t hurried = 0;        // of them, before all sessions were open
  uint64_t kept_sessions = 0;  // of members that stayed
  uint64_t stops = 0, returns_empty = 0, returns_with_data = 0;
  uint64_t cuts = 0, cuts_one_way = 0;
  uint64_t sessions_lost = 0;
  uint64_t large_gets = 0, restarted_gets = 0, uploads = 0, collected = 0, flushes = 0;
  uint64_t uploads_moved = 0;  // whose key had another owner at the commit
  uint64_t pulled = 0, filled = 0, fills_refused = 0, asked_again = 0;
  uint64_t held_back = 0, let_in = 0, not_told = 0;  // members, of changes
  uint64_t ejected_unreachable = 0, ejected_slow = 0, returned = 0, withheld = 0, failed_probes = 0;
  uint64_t entered = 0, cleared = 0, given_up = 0, purged = 0, flushed_owners = 0, stood_in = 0, waited = 0, looked = 0;
  uint64_t left_under_way = 0;  // members that left while something was under way with them
};

class PoolWorld {
 public:
  PoolWorld(uint64_t seed, const PoolScenario& scenario);
  ~PoolWorld();

  // Until all clients have asked and been answered; then mends all that is broken, gives all proxies the same members,
  // and has the clients ask as much again, which must not fail.
  void run();
  std::string outcome() const;
  std::string summary() const;

  void preempt();
  void advance_ns(uint64_t ns) { clock.manual.advance_ns(ns); }
  bool is_tracing() const { return tracing_; }
  void trace(const std::string& line) const;

  const uint64_t seed;
  const PoolScenario scenario;
  Rng rng;
  SimClock clock;
  const ControlClock control_clock{clock};
  Network network;
  History history;
  PoolCounters counters;
  uint64_t sessions_made = 0;
  std::vector<SimBackend> backends;  // the gutter's at the end
  std::vector<std::unique_ptr<SimProxy>> proxies;

 private:
  size_t actors() const;
  void step();
  void step_actor(size_t actor);
  void step_others();
  bool run_until(const std::function<bool()>& done, const char* what);
  bool seems_quiet() const;
  bool is_quiet();
  bool skip_to_next();
  // What happens to the pool.
  void direct();
  void change_members();
  void tell_of_members();
  std::vector<pool::Member> all_of_gutter() const;
  void fail_something();
  void stop(uint32_t backend);
  void start(uint32_t backend);
  void return_something();
  void cut(uint32_t backend, uint32_t proxy, Network::Cut cut);
  void heal();
  bool look();
  void finish();
  bool is_at_rest() const;
  std::unique_ptr<rpc::OpHandler> make_executor(uint32_t partition);
  static std::string path(uint32_t backend, uint32_t proxy);

  const bool tracing_;
  std::vector<pool::Member> members_, gutter_;  // as they should be
  std::vector<pool::Member> known_;             // members that a proxy was told of last
  uint32_t member_changes_ = 0;
  std::set<uint32_t> untold_;  // proxies that do not know yet
  std::map<std::string, Network::Cut> cut_now_;
  uint64_t process_ = 0;  // of backends, so far, without those that began with the data of one before
  uint64_t started_ = 0;  // with those
  std::set<size_t> busy_;
};

}  // namespace egret::sim
