#include "world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "sim_relay.h"

namespace egret::sim {

// --- SimClient -----------------------------------------------------------------------------------------------------

namespace {
rpc::SessionOptions options_of(const Scenario& scenario, const std::string& address, uint32_t number) {
  rpc::SessionOptions options = scenario.session;
  options.address = address;
  options.worker_id = 2 * (number + 1);  // its twin is the next number
  options.window = scenario.relayed.is_on ? scenario.relayed.window : scenario.layout.window;
  if (scenario.relayed.is_on) options.relayed_to = SimRelay::kMember;
  if (scenario.clients_sleep_always) options.spin_ns = 0;
  return options;
}

std::vector<Partition*> partitions_of(const World& world, uint32_t client) {
  std::vector<Partition*> served;
  for (size_t at = client; world.scenario.is_one_process && at < world.partitions.size();
       at += world.scenario.clients) {
    served.push_back(world.partitions[at].get());
  }
  return served;
}

NetworkOptions network_of(const Scenario& scenario) {
  NetworkOptions options = scenario.network;
  if (!scenario.is_one_process) return options;
  options.flavour = Flavour::kLocal;
  options.workers = scenario.clients;
  return options;
}
}  // namespace

SimClient::SimClient(World& world, uint32_t number)
    : world_(world),
      address_((world.scenario.relayed.is_on        ? std::string(SimRelay::kAddress) + "@"
                : world.scenario.has_two_transports ? "rdma+tcp:"
                                                    : "sim:") +
               std::to_string(number)),
      partitions_(partitions_of(world, number)),
      session_(options_of(world.scenario, address_, number), world.clock, *this, Network::connect),
      to_submit_(world.scenario.ops_per_client) {}

void SimClient::on_session_lost(rpc::ClientSession&, const std::string& why, bool was_open) {
  sessions_lost_ += was_open;
  why_lost_ = why;
}

// The descriptors that its event loop watches: only those of the session, not of what is to take its place.
bool SimClient::is_control_ready() const {
  const auto state = session_.state();
  if (state != rpc::ClientSession::State::kHandshaking && state != rpc::ClientSession::State::kOpen) return false;
  return world_.network.is_ready(session_.endpoint().control_fd());
}

bool SimClient::has_reason_to_wake() const {
  if (session_.is_open() && world_.network.is_ready(session_.endpoint().data_fd())) return true;
  if (std::ranges::any_of(partitions_, &Partition::is_signalled)) return true;
  return is_control_ready() || is_tick_due();
}

bool SimClient::is_tick_due() const {
  if (session_.is_open() && !world_.scenario.time_heals) return false;
  return session_.needs_tick() && world_.clock.manual.now_ns() >= next_tick_ns_;
}

bool SimClient::is_asleep() const {
  if (frozen_) return true;
  if (!blocked_ || has_reason_to_wake()) return false;
  return is_finished() || waiting_for_credit_ || !session_.is_open();
}

void SimClient::step() {
  if (frozen_) return;
  const bool may_submit = !is_finished() && !waiting_for_credit_ && session_.is_open() && world_.rng.percent(15);
  if (blocked_ && !has_reason_to_wake() && !may_submit) return;
  blocked_ = false;
  active_.begin_pass();
  // An event loop reports what is ready in any order: ops may have been appended when the session's end is heard of.
  const bool submit_first = world_.rng.percent(50);
  if (may_submit && submit_first) submit();
  if (session_.is_open() && world_.network.take_ready(session_.endpoint().data_fd())) session_.on_data_ready();
  if (is_control_ready()) session_.on_control_ready();
  if (is_tick_due()) {
    next_tick_ns_ = world_.clock.manual.now_ns() + world_.scenario.tick_ns;
    session_.tick();
  }
  if (may_submit && !submit_first) submit();
  if (on_turn && session_.is_open()) on_turn();
  run_passes();
  if (poll_partitions()) run_passes();
  blocked_ = may_block();
  sleeps_ += blocked_;
}

bool SimClient::poll_partitions() {
  bool any = false;
  for (Partition* const partition : partitions_) any |= partition->poll();
  return any;
}

void SimClient::submit() {
  if (waiting_for_credit_ || !session_.is_open()) return;
  for (uint32_t burst = world_.rng.between(1, world_.scenario.burst); burst > 0 && !is_finished(); --burst) {
    // One that is executed at once is answered within append(), and that may submit others.
    std::unique_ptr<Model::Draft> draft = draft_ != nullptr ? std::move(draft_) : world_.model.draw_op();
    draft->op.hash = session_.lanes().hash(draft->key);
    ++submitted_;
    if (!world_.model.append(*draft, session_.lanes().of(draft->op.hash), session_.grant().session_id)) {
      draft_ = std::move(draft);
      --submitted_;
      if (std::exchange(waiting_for_credit_, true)) return;
      session_.credit().wait(this);
      return;
    }
  }
}

void SimClient::on_credit() {
  waiting_for_credit_ = false;
  submit();
}

void SimClient::run_passes() {
  // Far more than all ops of a world need, where each is answered within the call.
  constexpr int kMostPasses = 100'000;
  active_.flush();
  for (int passes = 0; passes < kMostPasses; ++passes) {
    const bool fetched = active_.fetch();
    const bool resumed = active_.hand_out_credit();
    if (!fetched && !resumed) return;
    active_.flush();
  }
  world_.model.fail("passes without end");
}

bool SimClient::may_block() {
  if (active_.should_spin()) return false;
  const bool quiet = active_.prepare_sleep();
  if (!quiet) run_passes();
  return quiet && std::ranges::all_of(partitions_, &Partition::prepare_sleep);
}

// --- World ---------------------------------------------------------------------------------------------------------

World::World(uint64_t world_seed, const Scenario& given, const MakeHandler& make_handler)
    : seed(world_seed),
      scenario(given),
      rng(world_seed),
      model(scenario.model, rng),
      network(network_of(scenario), clock.manual, rng),
      server({.address = scenario.relayed.is_on ? SimRelay::kBackend : "",
              .layout = scenario.layout,
              .features = wire::kLaneRings | (scenario.knows_deliver ? wire::kDeliver : 0),
              .item_size_max = scenario.item_size_max,
              .lane_idle_ns = scenario.lane_idle_ns,
              .park_always = scenario.park_always,
              .torn_limit_ns = scenario.torn_limit_ns,
              .push = scenario.push,
              .is_driven = scenario.is_one_process},
             clock, network, rng),
      tracing_(std::getenv("EGRET_SIM_TRACE") != nullptr) {
  for (uint32_t i = 0; i < scenario.layout.lanes; ++i) {
    auto handler = make_handler ? make_handler(*this, i) : std::make_unique<ModelHandler>(model, i, [this] {
      if (scenario.pause_max_ns > 0) pass_time(rng.below(static_cast<uint32_t>(scenario.pause_max_ns)));
      preempt();
    });
    handlers_.push_back(handler.get());
    server.add_partition(std::move(handler));
  }
  if (scenario.relayed.is_on) relay = std::make_unique<SimRelay>(*this);
  for (uint32_t i = 0; i < scenario.clients; ++i) clients.push_back(std::make_unique<SimClient>(*this, i));
  network.set_preempt([this] { preempt(); });
  clock.on_read = [this] { preempt(); };
  if (relay != nullptr) relay->start();
  for (const auto& client : clients) client->start();
}

World::~World() {
  tear_down();
}

void World::tear_down() {
  network.set_preempt({});
  clock.on_read = {};
  on_step = {};
  for (const auto& client : clients) client->session().close();
  model.give_back_loans();
  if (relay != nullptr) relay->session().close();
  for (const auto& other : others) other->end();
}

void World::step_actor(size_t actor) {
  if (server.options.is_driven && actor < partitions.size()) actor = partitions.size() + actor % clients.size();
  if (!busy_.insert(actor).second) return;
  const auto act = [&](auto& one) {
    one.step();
    busy_.erase(actor);
    if (tracing_) trace(one.describe());
  };
  const size_t client = actor - partitions.size();
  const bool is_relay = relay != nullptr && actor == relay_actor();
  if (actor < partitions.size()) {
    act(*partitions[actor]);
  } else if (client < clients.size()) {
    act(*clients[client]);
  } else if (is_relay) {
    act(*relay);
  } else {
    act(*others[actor - relay_actor() - (relay != nullptr ? 1 : 0)]);
  }
}

void World::step() {
  advance_ns(rng.below(static_cast<uint32_t>(scenario.step_max_ns)) + 1);
  if (on_step) on_step();
  const uint32_t what = rng.below(100);
  if (what < 5) {
    control.step();
  } else if (what < 60) {
    network.step();
  } else {
    step_actor(rng.below(static_cast<uint32_t>(actors())));
  }
}

// Somebody is let in between two steps of whoever's turn it is: the network, or another actor (one level deep).
void World::preempt() {
  if (busy_.empty() || !rng.percent(scenario.preempt_percent)) return;
  // Mostly for a moment; now and then long enough for a whole exchange.
  for (uint32_t steps = rng.percent(10) ? rng.between(5, 50) : rng.between(1, 4); steps > 0; --steps) {
    advance_ns(rng.below(20));
    step_others();
  }
}

void World::pass_time(uint64_t ns) {
  const uint64_t end = clock.manual.now_ns() + ns;
  while (clock.manual.now_ns() < end) {
    advance_ns(rng.below(static_cast<uint32_t>(scenario.step_max_ns)) + 1);
    step_others();
  }
}

void World::step_for(uint64_t ns) {
  const uint64_t end = clock.manual.now_ns() + ns;
  while (clock.manual.now_ns() < end && !model.has_failed()) step();
}

void World::step_others() {
  const uint32_t acting = network.acting_partition;
  if (busy_.size() > 1 || rng.percent(75)) {
    network.step();
  } else {
    step_actor(rng.below(static_cast<uint32_t>(actors())));
  }
  network.acting_partition = acting;
}

bool World::seems_quiet() const {
  return network.is_idle() && (relay == nullptr || relay->is_asleep()) &&
         std::ranges::all_of(partitions, [](const auto& p) { return p->is_asleep() || p->is_idle(); }) &&
         std::ranges::all_of(clients, [](const auto& c) { return c->is_asleep(); }) &&
         std::ranges::all_of(others, [](const auto& o) { return o->is_asleep(); });
}

bool World::is_quiet() {
  for (int looks = 0; looks < 3; ++looks) {
    if (!seems_quiet() || control.step()) return false;
    if (relay != nullptr) step_actor(relay_actor());  // it may send something, which the partitions look for next
    for (size_t i = 0; i < partitions.size(); ++i) step_actor(i);
  }
  return seems_quiet();
}

bool World::run_until(const std::function<bool()>& done, uint64_t max_steps) {
  for (uint64_t steps = 0; steps < max_steps && !model.has_failed(); ++steps) {
    if (done()) return true;
    step();
  }
  return false;
}

// False when no client would do anything at a later time either.
bool World::skip_to_tick() {
  uint64_t next = UINT64_MAX;
  for (const auto& client : clients) {
    if (client->session().needs_tick()) next = std::min(next, client->next_tick_ns());
  }
  if (relay != nullptr && relay->session().needs_tick()) next = std::min(next, relay->next_tick_ns());
  const uint64_t now = clock.manual.now_ns();
  if (next == UINT64_MAX) return false;
  if (next > now) advance_ns(next - now);
  return true;
}

void World::run(uint64_t max_steps) {
  bool stuck = false;
  const auto is_settled = [&] {
    const auto is_finished = [](const auto& actor) { return actor->is_finished(); };
    return model.is_settled() && std::ranges::all_of(clients, is_finished) && std::ranges::all_of(others, is_finished);
  };
  const auto is_done = [&] {
    if (is_settled()) return true;
    if (!is_quiet()) return false;
    if (is_settled()) return true;  // by the last looks
    return stuck = !scenario.time_heals || !skip_to_tick();
  };
  const bool ended = run_until(is_done, max_steps);
  if (model.has_failed()) return;
  if (stuck) model.fail("lost wake-up: nothing moves any more, but these wait:" + model.unanswered());
  if (!ended) model.fail("no end after " + std::to_string(max_steps) + " steps; these wait:" + model.unanswered());
  check_loans();
}

// What was lent comes back. (What a session did not live to take comes back when its lanes go.)
void World::check_loans() {
  model.give_back_loans();
  if (scenario.model.may_be_lost || scenario.model.may_time_out) return;
  for (ModelHandler* const handler : handlers_) {
    if (handler->lent() > 0) model.fail("values are lent that nobody has");
  }
}

rpc::LaneCounters World::client_counters() const {
  rpc::LaneCounters sum;
  for (const auto& client : clients) sum += client->session().counters().sum();
  return sum;
}

rpc::PollerCounters World::server_counters() const {
  return server.counters();
}

void World::trace(const std::string& line) const {
  std::fprintf(stderr, "%9llu %s\n", static_cast<unsigned long long>(clock.manual.now_ns()), line.c_str());
}

std::string SimClient::describe() {
  std::string line =
      address_ + (blocked_ ? " blocked" : " awake") + (session_.is_open() ? "" : " no session: " + why_lost_);
  for (uint32_t i = 0; i < session_.lanes().count(); ++i) {
    const rpc::ClientLane& lane = session_.lanes()[i];
    line += " [" + std::to_string(lane.outstanding()) + " from " + std::to_string(lane.progress().answered);
    if (lane.outstanding() > 0) line += " sent at " + std::to_string(lane.progress().oldest_sent_ns);
    const rpc::LaneCounters& counters = session_.counters().at(i);
    line += ", rings " + std::to_string(counters.rings.get()) + ", wants " + std::to_string(counters.wants.get()) + "]";
  }
  return line;
}

std::string World::describe() const {
  return std::string(scenario.network.flavour == Flavour::kShm ? "shm" : "verbs") + ", " +
         std::to_string(scenario.clients) + " clients, " + scenario.layout.to_string() + ", read depth " +
         std::to_string(scenario.network.read_depth) + ", at " + std::to_string(clock.manual.now_ns()) + " ns, " +
         std::to_string(model.answered()) + " of " + std::to_string(model.appended()) + " ops answered";
}

}  // namespace egret::sim
