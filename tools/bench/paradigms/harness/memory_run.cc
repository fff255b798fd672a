#include "bench_paradigms/harness/memory_run.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/monotonic.h"
#include "bench_paradigms/fabric/memory_fabric.h"
#include "bench_paradigms/harness/driver.h"
#include "bench_paradigms/harness/walk.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr uint64_t kStepsBetweenLooks = 1 << 16;           // at the clock and at `stop`
constexpr uint64_t kPatienceNs = 5 * bench::kNsPerSecond;  // without an answer
constexpr uint32_t kQuietPasses = 64;                      // with nothing done: all has come to rest
constexpr uint32_t kMostPasses = 100'000;                  // to come to rest
constexpr uint64_t kNsPerStep = 100;                       // of the clock that drivers see
thread_local uint64_t g_steps = 0;

uint64_t clock_of_steps() {
  return g_steps * kNsPerStep;
}

class StepClock final : public base::Clock {
 public:
  uint64_t now_ns() const override { return clock_of_steps(); }
  int64_t unix_seconds() const override { return 0; }
};

class MemoryRun {
 public:
  MemoryRun(const Paradigm& paradigm, const Setting& setting, const Case& one, const bench::Keyspace& keys)
      : paradigm_(paradigm),
        setting_(setting),
        case_(one),
        plan_(plan_of(setting, one)),
        spec_(workload_of(setting, one, paradigm.has(OpKind::kNext))),
        knowledge_(keys.count(), paradigm.stores_puts ? setting.writers : Writers::kAny, setting.erases > 0),
        world_(setting.seed),
        rng_(setting.seed * 7919) {
    plan_.keys = &keys;
    g_steps = 0;
    plan_.clock = &step_clock_;
  }
  ~MemoryRun() {
    clients_.clear();
    servers_.clear();
  }
  MemoryRun(const MemoryRun&) = delete;
  MemoryRun& operator=(const MemoryRun&) = delete;

  Status prepare();
  void drive(const std::atomic<bool>& stop);
  RunOutcome outcome();

 private:
  void step();
  void come_to_rest();
  bool is_finished() const {
    return std::all_of(drivers_.begin(), drivers_.end(), [](const Driver& each) { return each.is_finished(); });
  }

  const Paradigm& paradigm_;
  const Setting& setting_;
  Case case_;
  StepClock step_clock_;
  Plan plan_;
  WorkloadSpec spec_;
  Knowledge knowledge_;
  MemoryWorld world_;
  bench::Rng rng_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;  // by node
  std::vector<std::unique_ptr<ServerNode>> servers_;
  std::vector<std::unique_ptr<ClientNode>> clients_;
  std::vector<Driver> drivers_;  // by client
  std::vector<VerbCounts> loaded_;
  Walked walked_;
};

Status MemoryRun::prepare() {
  std::vector<Node*> nodes;
  for (NodeId id = 0; id < plan_.nodes(); ++id) {
    fabrics_.push_back(world_.make_fabric(id));
    fabrics_.back()->want_huge_pages(plan_.tuning.has_huge_pages);
    if (plan_.is_server(id)) {
      servers_.push_back(make_server(paradigm_, plan_, id, *fabrics_.back()));
      nodes.push_back(servers_.back().get());
    } else {
      clients_.push_back(make_client(paradigm_, plan_, id, *fabrics_.back()));
      nodes.push_back(clients_.back().get());
    }
    if (Status done = nodes.back()->prepare(); !done) return done;
  }
  for (NodeId to = 0; to < plan_.nodes(); ++to) {
    for (NodeId from = 0; from < plan_.nodes(); ++from) {
      if (from == to) continue;
      if (Status done = nodes[to]->join(from, fabrics_[from]->address(), nodes[from]->notice(to)); !done) return done;
    }
  }
  for (Node* node : nodes) {
    if (Status done = node->load(); !done) return done;
  }
  world_.settle();
  for (const auto& fabric : fabrics_) loaded_.push_back(fabric->counts());
  for (NodeId id = 0; id < plan_.servers; ++id) {
    walked_ += walk_of(*servers_[id], id, plan_, spec_, setting_.ops);
  }
  drivers_.reserve(plan_.clients);
  for (uint32_t client = 0; client < plan_.clients; ++client) {
    drivers_.emplace_back(Driver::Parts{plan_, *clients_[client], knowledge_, spec_, clock_of_steps}, client,
                          pace_of(plan_, {case_.rate, setting_.ops}, client, clock_of_steps()));
  }
  return Status::ok();
}

void MemoryRun::step() {
  ++g_steps;
  if (rng_.below(3) == 0) {
    servers_[rng_.below(plan_.servers)]->serve();
  } else {
    world_.advance();
  }
  drivers_[rng_.below(plan_.clients)].step();
}

void MemoryRun::drive(const std::atomic<bool>& stop) {
  uint64_t answered = 0;
  uint64_t moved_at = bench::monotonic_ns();
  while (!is_finished()) {
    for (uint64_t i = 0; i < kStepsBetweenLooks && !is_finished(); ++i) step();
    uint64_t now_answered = 0;
    for (const Driver& each : drivers_) now_answered += each.answered();
    const uint64_t now = bench::monotonic_ns();
    if (now_answered != answered) moved_at = now;
    answered = now_answered;
    if (stop.load() || now - moved_at > kPatienceNs) return;
  }
  come_to_rest();
}

// What servers do after their answers (posting RECVs again) is part of what an op costs.
void MemoryRun::come_to_rest() {
  for (uint32_t pass = 0, quiet = 0; pass < kMostPasses && quiet < kQuietPasses; ++pass) {
    bool has_moved = world_.advance();
    for (const auto& server : servers_) has_moved = server->serve() || has_moved;
    for (Driver& driver : drivers_) has_moved = driver.step() || has_moved;
    quiet = has_moved ? 0 : quiet + 1;
  }
}

RunOutcome MemoryRun::outcome() {
  RunOutcome out;
  for (NodeId id = 0; id < plan_.nodes(); ++id) {
    NodeOutcome node;
    node.is_server = plan_.is_server(id);
    node.verbs = fabrics_[id]->counts() - loaded_[id];
    if (node.is_server) {
      node.trouble = servers_[id]->trouble();
    } else {
      node.tally = drivers_[id - plan_.servers].tally();
      node.trouble = clients_[id - plan_.servers]->trouble();
    }
    out.add(node);
  }
  out.walked = walked_;
  return out;
}

}  // namespace

base::Expected<RunAnswer> MemoryRunner::run(const Paradigm& paradigm, const Case& one, const std::atomic<bool>& stop) {
  MemoryRun run(paradigm, setting_, one, keys_);
  if (Status done = within_memory([&] { return run.prepare(); }); !done) return RunAnswer{done.message(), {}};
  run.drive(stop);
  return RunAnswer{"", run.outcome()};
}

Capabilities MemoryRunner::capabilities() const {
  return MemoryWorld(1).capabilities();
}

}  // namespace egret::bench_paradigms
