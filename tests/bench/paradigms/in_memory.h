// A paradigm's nodes over the memory fabric, in one thread: all are made, told of each other and loaded; then steps are
// drawn from a seed: a server core serves, a client polls or begins an op, the fabric moves a piece. Every answer is judged.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/keyspace.h"
#include "bench_paradigms/fabric/memory_fabric.h"
#include "bench_paradigms/node.h"
#include "bench_paradigms/paradigm.h"

namespace egret::bench_paradigms {

// What was answered. `wrong`: a value that is torn, another key's, or older than one already acknowledged; a miss of a key
// that was there all the time; a number of a sequencer given twice.
struct Seen {
  uint64_t ops = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t done = 0;
  uint64_t full = 0;
  uint64_t lost = 0;
  uint64_t failed = 0;
  uint64_t wrong = 0;
  std::string first_wrong;
  uint64_t lowest = UINT64_MAX, highest = 0;  // number that a sequencer gave
  VerbCounts clients, servers;                // posted during the run
};

struct Mix {
  double gets = 1;
  double erases = 0;            // of what are no gets; such keys are set again by the next put
  uint64_t ops = 1000;          // in all
  bool next_only = false;       // sequencers
  uint64_t steps = 50'000'000;  // a run that takes more stands still: what is not answered by then stays out of `ops`
};

class InMemory {
 public:
  // All of `id`; fails the test if it cannot be prepared.
  InMemory(std::string_view id, const Plan& plan, uint32_t keys, uint64_t seed = 1);
  ~InMemory();

  Seen run(const Mix& mix);
  // One op alone, to its end; other nodes go on meanwhile. `value` of the result is copied.
  struct Answer {
    std::optional<Outcome> outcome;  // none: it was never answered
    std::string value;
  };
  Answer one(uint32_t client, OpKind kind, uint32_t key_number, uint64_t version = 2);
  // Stores that READs may overtake are changed in steps; READs and clients come in between.
  void interrupt_changes() { plan_.pause = &let_in_; }  // before the first run
  // Called after every step, to interfere.
  void on_step(std::function<void()> interfere) { interfere_ = std::move(interfere); }

  MemoryWorld& world() { return world_; }
  base::ManualClock& clock() { return clock_; }  // the plan's, unless it has one; a step takes 1 us
  ServerNode& server(uint32_t index) { return *servers_[index]; }
  ClientNode& client(uint32_t index) { return *clients_[index]; }
  const bench::Keyspace& keys() const { return keys_; }
  const Plan& plan() const { return plan_; }
  // All server cores look at every so many-th step, instead of one at random now and then: 1: requests are answered in time,
  // more: they gather, as where cores are the limit.
  void serve_every(uint32_t steps) { serve_every_ = steps; }
  void stop_serving(bool is_stopped) { is_stopped_ = is_stopped; }  // as SIGSTOP does to all servers
  Trouble trouble() const;
  VerbCounts counts_of_clients() const;
  VerbCounts counts_of_servers() const;

 private:
  struct Going {
    OpKind kind;
    uint32_t key;
    uint64_t version;  // of a put
    uint64_t floor;    // versions below are old
    bool may_miss;
  };
  struct Key {
    uint64_t acknowledged = kLoadedVersion;  // the newest
    uint32_t writes_under_way = 0;
    bool may_miss = false;  // erased, or an erase is under way
  };
  void prepare();
  void step();
  void begin(uint32_t client, const Mix& mix, Seen& seen);
  void take(uint32_t client, Seen& seen);
  void judge(const Going& op, const Result& result, Seen& seen);
  void wrong(Seen& seen, const std::string& what);
  void let_in();

  base::ManualClock clock_;
  Plan plan_;
  bench::Keyspace keys_;
  MemoryWorld world_;
  bench::Rng rng_;
  const Paradigm* paradigm_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;
  std::vector<std::unique_ptr<ServerNode>> servers_;
  std::vector<std::unique_ptr<ClientNode>> clients_;
  std::vector<Key> state_;
  std::map<uint64_t, Going> going_;  // by ticket
  std::set<uint64_t> numbers_;
  std::function<void()> interfere_;
  const std::function<void()> let_in_ = [this] { let_in(); };
  Seen* running_ = nullptr;
  uint32_t serve_every_ = 0;  // 0: at random
  uint64_t steps_ = 0;
  bool is_stopped_ = false;
  uint64_t next_ticket_ = 1;
  uint64_t next_version_ = 1000;
  uint64_t begun_ = 0;
  Answer* single_ = nullptr;
};

}  // namespace egret::bench_paradigms
