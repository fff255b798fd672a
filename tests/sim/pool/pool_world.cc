#include "pool_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "backend/executor.h"
#include "base/check.h"

namespace egret::sim {

namespace {

constexpr uint64_t kStepMaxNs = 200;
constexpr uint64_t kMostSteps = 2'000'000;
constexpr int kMostStuck = 20;
constexpr uint64_t kPartitionMemory = 8 << 20;
constexpr uint32_t kItemSizeMax = 15'000;  // so little that uploads wait for room
constexpr uint64_t kPatientNs = 1'000'000'000;
constexpr uint64_t kLooksNs = 20'000'000'000;  // of the control clock: 5 s until it is listed, 6 s until somebody asks

// An executor with its store, between whose steps others are let in.
class Executing final : public rpc::OpHandler {
 public:
  Executing(std::unique_ptr<backend::Executor> executor, PoolWorld& world)
      : executor_(std::move(executor)), world_(world) {}

  void begin_round() override {
    world_.preempt();
    executor_->begin_round();
    if (world_.rng.percent(5)) executor_->idle_step();
  }
  void foresee(std::span<op::Op> ops) override { executor_->foresee(ops); }
  void prepare(std::span<op::Op> ops, std::span<const rpc::LaneId> lanes) override { executor_->prepare(ops, lanes); }
  void locate() override { executor_->locate(); }
  op::Result execute(size_t index) override {
    world_.preempt();
    return executor_->execute(index);
  }
  void lane_attached(rpc::LaneId lane, const rpc::LaneBinding& binding) override {
    executor_->lane_attached(lane, binding);
  }
  void lane_dropped(rpc::LaneId lane) override { executor_->lane_dropped(lane); }

 private:
  std::unique_ptr<backend::Executor> executor_;
  PoolWorld& world_;
};

}  // namespace

PoolWorld::PoolWorld(uint64_t world_seed, const PoolScenario& given)
    : seed(world_seed),
      scenario(given),
      rng(world_seed),
      network(scenario.network, clock.manual, rng),
      history(scenario.registers, scenario.keys, scenario.backends + scenario.gutter),
      tracing_(std::getenv("EGRET_SIM_TRACE") != nullptr) {
  backends.resize(scenario.backends + scenario.gutter);
  for (uint32_t i = 0; i < backends.size(); ++i) {
    backends[i].address = "b" + std::to_string(i);
    start(i);
    if (i >= scenario.backends) continue;
    const uint32_t first = scenario.members_at_first == 0 ? scenario.backends : scenario.members_at_first;
    if (i < first) members_.push_back({.address = backends[i].address, .name = backends[i].address});
  }
  known_ = members_;
  gutter_ = all_of_gutter();
  bind_events(control_clock, network, rng);
  for (uint32_t i = 0; i < scenario.proxies; ++i) {
    proxies.push_back(std::make_unique<SimProxy>(*this, i, members_, gutter_));
  }
  network.set_preempt([this] { preempt(); });
  clock.on_read = [this] { preempt(); };
}

std::vector<pool::Member> PoolWorld::all_of_gutter() const {
  std::vector<pool::Member> members;
  for (size_t i = scenario.backends; i < backends.size(); ++i) {
    members.push_back({.address = backends[i].address, .name = backends[i].address});
  }
  return members;
}

PoolWorld::~PoolWorld() {
  network.set_preempt({});
  clock.on_read = {};
  for (const auto& proxy : proxies) proxy->stop();
}

// --- backends and paths --------------------------------------------------------------------------------------------

std::string PoolWorld::path(uint32_t backend, uint32_t proxy) {
  return "b" + std::to_string(backend) + "@p" + std::to_string(proxy);
}

std::unique_ptr<rpc::OpHandler> PoolWorld::make_executor(uint32_t partition) {
  // A partition of the gutter lists an owner once in five seconds.
  const base::Clock& executors_clock = scenario.looks ? static_cast<const base::Clock&>(control_clock) : clock;
  auto made = backend::Executor::create({.partition = partition,
                                         .partitions = scenario.layout.lanes,
                                         .memory = kPartitionMemory * scenario.layout.lanes,
                                         .item_size_max = kItemSizeMax,
                                         .evict = true,
                                         .hash_seed = process_},
                                        executors_clock);
  EGRET_CHECK(made.is_ok());
  return std::make_unique<Executing>(std::move(made.value()), *this);
}

void PoolWorld::start(uint32_t number) {
  SimBackend& backend = backends[number];
  if (backend.kept.empty()) {
    backend.hash_seed = ++process_;
    for (uint32_t i = 0; i < scenario.layout.lanes; ++i) backend.kept.push_back(make_executor(i));
  }
  backend.server = std::make_unique<Server>(ServerOptions{.address = backend.address,
                                                          .layout = scenario.layout,
                                                          .epoch = ++started_,
                                                          .features = wire::kFailover | wire::kWarm,
                                                          .hash_seed = backend.hash_seed,
                                                          .item_size_max = kItemSizeMax},
                                            clock, network, rng);
  for (auto& handler : std::exchange(backend.kept, {})) backend.server->add_partition(std::move(handler));
  network.refuse_connections(backend.address, false);
}

// Its process ends. Whether its data is kept is known at once; nobody can tell before it is back.
void PoolWorld::stop(uint32_t number) {
  SimBackend& backend = backends[number];
  network.refuse_connections(backend.address, true);
  backend.kept = backend.server->end();
  backend.server.reset();
  ++counters.stops;
  const bool is_empty = rng.percent(50);
  if (is_empty) backend.kept.clear();
  ++(is_empty ? counters.returns_empty : counters.returns_with_data);
  history.end_process(number, is_empty);
  if (tracing_) trace(backend.address + " stops" + (is_empty ? ", will be empty" : ", keeps its data"));
}

void PoolWorld::cut(uint32_t backend, uint32_t proxy, Network::Cut cut) {
  const std::string where = path(backend, proxy);
  cut_now_[where] = cut;
  network.cut(where, cut);
  counters.cuts += cut.to_server || cut.to_client;
  counters.cuts_one_way += cut.to_server != cut.to_client;
  if (tracing_)
    trace(where + (cut.to_server ? " cut to the server" : "") + (cut.to_client ? " cut to the client" : " ."));
}

// --- what happens --------------------------------------------------------------------------------------------------

void PoolWorld::direct() {
  const bool may_change = scenario.steps_to_change > 0 && member_changes_ < scenario.most_changes;
  if (may_change && rng.below(scenario.steps_to_change) == 0) change_members();
  if (!untold_.empty() && rng.below(120) == 0) tell_of_members();
  if (scenario.steps_to_failure == 0) return;
  if (rng.below(scenario.steps_to_failure) == 0) fail_something();
  if (rng.below(scenario.steps_to_failure) == 0) return_something();
}

// Any of the backends, at least one, some with more weight. If they are told, one stays of the list that the proxy knows,
// which need not be in force: with none in common they would be another pool, of which nothing has moved.
void PoolWorld::change_members() {
  std::vector<pool::Member> next;
  std::string staying;
  if (scenario.tells) staying = known_[rng.below(static_cast<uint32_t>(known_.size()))].address;
  for (const SimBackend& backend : std::span(backends).first(scenario.backends)) {
    if (backend.address != staying && !rng.percent(65)) continue;
    next.push_back({.address = backend.address, .name = backend.address, .weight = rng.percent(15) ? 2U : 1U});
  }
  if (next.empty()) return;
  if (rng.percent(30)) std::ranges::reverse(next);
  members_ = std::move(next);
  if (scenario.gutter_changes && rng.percent(40)) {
    gutter_ = all_of_gutter();
    if (rng.percent(60)) gutter_.erase(gutter_.begin() + rng.below(static_cast<uint32_t>(gutter_.size())));
  }
  ++member_changes_;
  for (uint32_t i = 0; i < proxies.size(); ++i) untold_.insert(i);
  if (!tracing_) return;
  std::string names;
  for (const pool::Member& member : members_) names += " " + member.name;
  trace("members shall be" + names);
}

void PoolWorld::tell_of_members() {
  const auto who = std::next(untold_.begin(), rng.below(static_cast<uint32_t>(untold_.size())));
  if (tracing_) trace(proxies[*who]->name() + " is told of members");
  proxies[*who]->control().change(members_, gutter_);
  known_ = members_;
  untold_.erase(who);
}

void PoolWorld::fail_something() {
  const uint32_t backend = rng.below(static_cast<uint32_t>(backends.size()));
  const uint32_t proxy = rng.below(scenario.proxies);
  pool::Pool& pool = proxies[proxy]->workers()[rng.below(scenario.workers)]->pool();
  const uint32_t what = rng.below(100);
  if (what < 25) {
    if (backends[backend].server != nullptr) stop(backend);
  } else if (what < 65) {
    if (scenario.network.flavour == Flavour::kShm) return;
    const uint32_t how = rng.below(3);
    cut(backend, proxy, {.to_server = how != 1, .to_client = how != 0});
  } else if (what < 75) {
    if (cut_now_.contains(path(backend, proxy))) network.break_clients(path(backend, proxy));
  } else if (what < 90) {
    if (backends[backend].server == nullptr) return;
    backends[backend].server->partitions[rng.below(scenario.layout.lanes)]->freeze(true);
  } else if (what < 93) {
    // Whoever leaves has had its time.
    if (!scenario.tells && pool.is_anybody_leaving()) advance_ns(pool::Pool::kLeaveNs);
  } else {
    const auto& sessions = pool.sessions();
    if (sessions.empty()) return;
    rpc::ClientSession& session = *sessions[rng.below(static_cast<uint32_t>(sessions.size()))];
    if (session.is_open()) session.close();
  }
}

// What has failed comes back, one after the other.
void PoolWorld::return_something() {
  const uint32_t backend = rng.below(static_cast<uint32_t>(backends.size()));
  if (backends[backend].server == nullptr) {
    start(backend);
    if (tracing_) trace(backends[backend].address + " is back");
    return;
  }
  for (const auto& partition : backends[backend].server->partitions) partition->freeze(false);
  const uint32_t proxy = rng.below(scenario.proxies);
  if (cut_now_.contains(path(backend, proxy))) {
    cut(backend, proxy, {});
    cut_now_.erase(path(backend, proxy));
  }
}

void PoolWorld::heal() {
  for (const auto& [where, _] : std::exchange(cut_now_, {})) network.cut(where, {});
  for (uint32_t i = 0; i < backends.size(); ++i) {
    if (backends[i].server == nullptr) start(i);
    for (const auto& partition : backends[i].server->partitions) partition->freeze(false);
  }
  untold_.clear();
  for (const auto& proxy : proxies) proxy->control().change(members_, gutter_);
}

// --- turns ---------------------------------------------------------------------------------------------------------

// Workers, control threads, partitions.
size_t PoolWorld::actors() const {
  return proxies.size() * (scenario.workers + 1) + backends.size() * scenario.layout.lanes;
}

void PoolWorld::step_actor(size_t actor) {
  if (!busy_.insert(actor).second) return;
  const size_t workers = proxies.size() * scenario.workers;
  if (actor < workers) {
    proxies[actor / scenario.workers]->workers()[actor % scenario.workers]->step();
  } else if (actor < workers + proxies.size()) {
    proxies[actor - workers]->control().step();
  } else {
    const size_t number = actor - workers - proxies.size();
    SimBackend& backend = backends[number / scenario.layout.lanes];
    if (backend.server != nullptr) backend.server->partitions[number % scenario.layout.lanes]->step();
  }
  busy_.erase(actor);
}

void PoolWorld::step() {
  advance_ns(rng.below(kStepMaxNs) + 1);
  const uint32_t what = rng.below(100);
  if (what < 5) {
    SimBackend& backend = backends[rng.below(static_cast<uint32_t>(backends.size()))];
    if (backend.server != nullptr) backend.server->control.step();
  } else if (what < 55) {
    network.step();
  } else {
    step_actor(rng.below(static_cast<uint32_t>(actors())));
  }
}

void PoolWorld::preempt() {
  if (busy_.empty() || !rng.percent(scenario.preempt_percent)) return;
  for (uint32_t steps = rng.percent(10) ? rng.between(5, 50) : rng.between(1, 4); steps > 0; --steps) {
    advance_ns(rng.below(20));
    step_others();
  }
}

void PoolWorld::step_others() {
  const uint32_t acting = network.acting_partition;
  if (busy_.size() > 1 || rng.percent(75)) {
    network.step();
  } else {
    step_actor(rng.below(static_cast<uint32_t>(actors())));
  }
  network.acting_partition = acting;
}

bool PoolWorld::seems_quiet() const {
  if (!network.is_idle()) return false;
  if (!std::ranges::all_of(proxies, [](const auto& proxy) { return proxy->is_asleep(); })) return false;
  return std::ranges::all_of(backends, [](const SimBackend& backend) {
    return backend.server == nullptr || std::ranges::all_of(backend.server->partitions, [](const auto& partition) {
             return partition->is_asleep() || partition->is_idle();
           });
  });
}

// Nothing moves any more unless time passes. Partitions that poll look once more.
bool PoolWorld::is_quiet() {
  for (int looks = 0; looks < 3; ++looks) {
    if (!seems_quiet()) return false;
    for (const SimBackend& backend : backends) {
      if (backend.server != nullptr && backend.server->control.step()) return false;
    }
    for (size_t i = proxies.size() * (scenario.workers + 1); i < actors(); ++i) step_actor(i);
  }
  return seems_quiet();
}

bool PoolWorld::skip_to_next() {
  uint64_t next = UINT64_MAX;
  for (const auto& proxy : proxies) next = std::min(next, proxy->next_tick_ns());
  if (next == UINT64_MAX) return false;
  const uint64_t now = clock.manual.now_ns();
  if (next > now) advance_ns(next - now);
  return true;
}

bool PoolWorld::run_until(const std::function<bool()>& done, const char* what) {
  int stuck = 0;  // looks in a row; a backend's control may still have had something to do at the first
  for (uint64_t steps = 0; steps < kMostSteps && !history.has_failed(); ++steps) {
    if (done()) return true;
    stuck = is_quiet() && !done() && !skip_to_next() ? stuck + 1 : 0;
    if (stuck == kMostStuck) {
      history.fail(std::string(what) + ": nothing moves any more");
      return false;
    }
    step();
  }
  if (!history.has_failed()) history.fail(std::string(what) + ": no end");
  return false;
}

void PoolWorld::run() {
  const auto settled = [&] {
    return std::ranges::all_of(proxies, [](const auto& proxy) { return proxy->is_settled(); });
  };
  const auto finished = [&] {
    return std::ranges::all_of(proxies, [](const auto& proxy) { return proxy->is_finished(); });
  };
  const auto ask = [&] {
    for (const auto& proxy : proxies) proxy->ask_more(scenario.requests);
  };
  if (!run_until(settled, "sessions at the start")) return;
  if (scenario.looks) cut(0, 0, {.to_server = true, .to_client = rng.percent(50)});
  ask();
  if (scenario.steps_to_failure > 0 || scenario.hurried || scenario.looks) history.allow_failures();
  if (scenario.tells) history.allow_misses();
  if (scenario.warm_ns > 0) history.allow_fills();
  const auto directed = [&] {
    direct();
    return finished();
  };
  if (!run_until(directed, "requests while things happen")) return;
  if (scenario.looks && !look()) return;
  // All is well again: everything is served, by the same members.
  for (const auto& proxy : proxies) proxy->set_op_timeout(kPatientNs);
  heal();
  // What broke meanwhile is noticed when the network is quiet.
  if (!run_until([&] { return settled() && is_quiet() && settled(); }, "all is well again, sessions")) return;
  history.expect_service();
  ask();
  if (!run_until(finished, "requests after that")) return;
  run_until([&] { return is_at_rest(); }, "who has left is gone");
  if (tracing_) trace(summary());
}

// Whoever never lost the first backend knows, after some seconds, what others have changed in its place.
bool PoolWorld::look() {
  const uint64_t since = history.now();
  const uint64_t until_ns = control_clock.quiet_now_ns() + kLooksNs;
  if (!run_until([&] { return control_clock.quiet_now_ns() >= until_ns; }, "others look")) return false;
  for (uint32_t i = 1; i < scenario.proxies; ++i) history.on_look(i, since);
  for (const auto& proxy : proxies) proxy->ask_more(scenario.requests);
  const auto finished = [&] {
    return std::ranges::all_of(proxies, [](const auto& proxy) { return proxy->is_finished(); });
  };
  return run_until(finished, "requests when others have looked");
}

// Each proxy has a session with each member and no other; the backends have no others either.
bool PoolWorld::is_at_rest() const {
  size_t sessions = 0, open = 0;
  const size_t all = members_.size() + gutter_.size();
  for (const auto& proxy : proxies) {
    for (const auto& worker : proxy->workers()) {
      if (worker->pool().sessions().size() != all || worker->pool().is_anybody_leaving()) return false;
      sessions += all;
    }
  }
  for (const SimBackend& backend : backends) open += backend.server->control.open_sessions();
  return open == sessions;
}

void PoolWorld::trace(const std::string& line) const {
  std::fprintf(stderr, "%9llu %s\n", static_cast<unsigned long long>(clock.manual.now_ns()), line.c_str());
}

std::string PoolWorld::summary() const {
  const auto row = [](const char* name, uint64_t count) {
    return ", " + std::string(name) + " " + std::to_string(count);
  };
  return "answered " + std::to_string(history.answered()) + row("failed", history.failed()) +
         row("hits", history.hits()) + row("misses", history.misses()) + row("changes", counters.changes) +
         row("hurried", counters.hurried) + row("stops", counters.stops) + row("cuts", counters.cuts) +
         row("sessions lost", counters.sessions_lost) + row("large", counters.large_gets) +
         row("restarted", counters.restarted_gets) + row("uploads", counters.uploads) +
         row("ejected", counters.ejected_unreachable + counters.ejected_slow) + row("returned", counters.returned) +
         row("entered", counters.entered) + row("stood in", counters.stood_in) + row("cleared", counters.cleared) +
         row("given up", counters.given_up) + row("purged", counters.purged) +
         row("flushed owners", counters.flushed_owners) + row("waited", counters.waited) +
         row("looked", counters.looked) + row("held back", counters.held_back) + row("let in", counters.let_in) +
         row("not told", counters.not_told) + row("collected", counters.collected) + row("flushes", counters.flushes) +
         row("left under way", counters.left_under_way);
}

std::string PoolWorld::outcome() const {
  if (!history.has_failed()) return "";
  std::string text = history.failure() + "\n  at " + std::to_string(clock.manual.now_ns()) + " ns, " +
                     std::to_string(history.answered()) + " answered";
  for (const auto& proxy : proxies) text += "\n  " + proxy->describe();
  return text;
}

}  // namespace egret::sim
