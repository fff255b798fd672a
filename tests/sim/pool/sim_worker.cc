#include "sim_worker.h"

#include <algorithm>
#include <utility>

#include "pool/gutter/stand_in.h"
#include "pool_world.h"

namespace egret::sim {

using pool::Membership;
using rpc::ClientSession;

SimWorker::SimWorker(PoolWorld& world, ProxyState& state, std::string proxy, uint32_t proxy_number, uint32_t number)
    : world_(world),
      state_(state),
      proxy_(std::move(proxy)),
      proxy_number_(proxy_number),
      number_(number),
      name_(proxy_ + "w" + std::to_string(number)),
      pool_([this](const Membership::Entry& entry) { return make_session(entry); }),
      pull_memory_(world.rng),
      pulls_(pool_, world.clock, pull_counters_, pull_memory_, next_upload_),
      options_(world.scenario.session) {
  options_.window = world.scenario.layout.window;
  for (uint32_t i = 0; i < world.scenario.connections; ++i)
    connections.push_back(std::make_unique<Connection>(*this, i));
}

SimWorker::~SimWorker() {
  connections.clear();
}

std::unique_ptr<ClientSession> SimWorker::make_session(const Membership::Entry& entry) {
  const uint64_t serial = ++world_.sessions_made;
  rpc::SessionOptions options = options_;
  options.address = entry.member.address + "@" + proxy_ + "#" + std::to_string(serial);
  options.worker_id = serial;
  auto session =
      std::make_unique<ClientSession>(options, world_.clock, *this, Network::connect, entry.stats->sessions[number_]);
  known_[session.get()] = {.address = options.address,
                           .serial = serial,
                           .backend = static_cast<uint32_t>(std::stoul(entry.member.address.substr(1)))};
  return session;
}

void SimWorker::set_op_timeout(uint64_t ns) {
  options_.op_timeout_ns = ns;
  for (const auto& session : pool_.sessions()) session->set_options(options_);
}

// --- members -------------------------------------------------------------------------------------------------------

bool SimWorker::is_settled() const {
  return !inbox_ && pool_.membership().version() == state_.joining->version() && pool_.is_ready_for(*state_.joining) &&
         !pool_.is_anybody_leaving() && pool_.health().ejected() == 0 && !is_health_new();
}

// As Worker::read_inbox.
void SimWorker::read_inbox() {
  if (std::exchange(inbox_, false)) take_membership();
  if (!std::exchange(wants_listing_, false)) return;
  lister_.start(pool_);
  is_listing_ = true;
}

// As Worker::take_membership.
void SimWorker::take_membership() {
  std::vector<ClientSession*> fresh;
  if (state_.membership->version() != pool_.membership().version()) {
    prepared_ = 0;
    SessionsOf before;
    for (const auto& session : pool_.serving()) before[pool_.member_of(*session).stats.get()] = session.get();
    fresh = pool_.apply(state_.membership, world_.clock.manual.now_ns());
    take_warm_phase(true);
    check_members(before);
    if (world_.is_tracing()) {
      std::string names;
      for (const Membership::Entry& entry : state_.membership->members()) names += " " + entry.member.name;
      world_.trace(name_ + " keys go by" + names);
    }
  } else {
    take_warm_phase(false);
  }
  if (state_.joining->version() > pool_.membership().version()) {
    for (ClientSession* session : pool_.prepare(*state_.joining)) fresh.push_back(session);
  }
  for (ClientSession* session : fresh) session->start();
  if (pool_.take(state_.health.get())) note_health();
  tell_if_prepared();
}

// As Worker::take_warm_phase.
void SimWorker::take_warm_phase(bool is_applied) {
  using State = pool::WarmPhase::State;
  const std::shared_ptr<const pool::WarmPhase> phase = state_.warm;
  const bool is_its = phase->version == pool_.membership().version();
  if (phase->state == State::kNone || (is_applied && !is_its)) {
    is_warm_fencing_ = false;
    return pulls_.close();
  }
  if (!is_its) return;
  if (is_applied) {
    pulls_.keep(phase->before);
    is_warm_fencing_ = true;
  }
  if (phase->state == State::kOpen && fenced_version_ == phase->version) pulls_.open();
}

void SimWorker::tell_if_fenced() {
  if (!is_warm_fencing_ || !pulls_.is_fenced()) return;
  is_warm_fencing_ = false;
  fenced_version_ = pool_.membership().version();
}

void SimWorker::tell_if_prepared() {
  if (prepared_ == state_.joining->version() || !pool_.is_ready_for(*state_.joining)) return;
  prepared_ = state_.joining->version();
}

bool SimWorker::is_health_new() const {
  return state_.health.version() != pool_.health().version();
}

// As Worker::take_health.
void SimWorker::take_health() {
  note_answers();
  if (!is_health_new()) return;
  if (!pool_.take(state_.health.get())) return;
  note_health();
  tell_if_prepared();
}

void SimWorker::note_health() {
  const pool::Health& health = pool_.health();
  taken_health_ = health.version();
  const bool anybody_waits =
      std::ranges::any_of(health.absent(), [](const auto& each) { return each.how == pool::Absence::kWaits; });
  if (anybody_waits) {
    std::vector<ClientSession*> sessions;
    for (const auto& session : pool_.gutter()) sessions.push_back(session.get());
    gutter_fence_.start(sessions);
  }
  is_fencing_ = true;
  note_fence();
  if (health.ejected() > 0) state_.health.ring();
}

bool SimWorker::has_answers() const {
  return (is_fencing_ && gutter_fence_.is_over()) || (is_listing_ && lister_.is_over()) ||
         (is_warm_fencing_ && pulls_.is_fenced());
}

void SimWorker::note_answers() {
  if (is_fencing_) note_fence();
  if (!is_listing_ || !lister_.is_over()) return;
  is_listing_ = false;
  state_.listing = std::make_shared<const pool::Listing>(lister_.take());
  state_.health.ring();
}

void SimWorker::note_fence() {
  if (!gutter_fence_.is_over()) return;
  is_fencing_ = false;
  fenced_health_ = pool_.health().version();
  if (pool_.health().ejected() > 0) state_.health.ring();
}

// After the verdict no request waits: whatever was under way with an ejected member has been answered in the same pass.
void SimWorker::check_ejected() {
  for (const auto& session : pool_.serving()) {
    const pool::Absent* const absent = pool_.health().find(*pool_.member_of(*session).stats);
    if (absent == nullptr) continue;
    const bool waits = std::ranges::any_of(connections, [&](const auto& each) { return each->waits_for(*session); });
    if ((session->is_open() && !absent->opens) || session->lanes().outstanding() > 0 || !session->credit().empty() ||
        waits) {
      world_.history.fail("a request waits for an ejected member, " + known_.at(session.get()).address);
    }
  }
}

// The sessions are those of the members, in their order, and who stayed has kept its session. Who has left and joined
// again is another member, also to a worker that was too slow to see it leave.
void SimWorker::check_members(const SessionsOf& before) {
  const auto members = pool_.membership().members();
  if (pool_.serving().size() != members.size()) return world_.history.fail("a member has no session");
  for (size_t i = 0; i < members.size(); ++i) {
    const ClientSession* session = pool_.serving()[i].get();
    if (!known_.at(session).address.starts_with(members[i].member.address + "@")) {
      return world_.history.fail("the session of a member is with another backend");
    }
    const auto stayed = before.find(members[i].stats.get());
    if (stayed == before.end()) continue;
    ++world_.counters.kept_sessions;
    if (stayed->second != session) return world_.history.fail("a member that stayed got another session");
  }
}

pool::Route SimWorker::route(const std::string& key) {
  const pool::Route route = pool_.route(key);
  if (route.session == nullptr) return route;
  const Membership& membership = pool_.membership();
  const size_t number = membership.owner_of(key);
  const pool::Member& owner =
      route.tag == 0 ? membership.members()[number].member : membership.gutter()[membership.gutter_of(key)].member;
  if (route.tag != 0 && route.tag != pool::tag_of(membership.members()[number].member.name)) {
    world_.history.fail("an op went to the gutter with another tag than its owner's");
  }
  if (!known_.at(route.session).address.starts_with(owner.address + "@")) {
    world_.history.fail("an op went to another backend than its key's");
  }
  return route;
}

void SimWorker::let_leave() {
  for (const auto& session : pool_.sessions()) {
    const bool is_busy = session->is_open() && session->lanes().outstanding() > 0;
    world_.counters.left_under_way += is_busy && pool_.is_leaving(*session);
  }
  for (const ClientSession* gone : pool_.let_leave(world_.clock.manual.now_ns())) {
    active_.forget(gone);
    known_.erase(gone);
  }
}

// --- the worker's loop ---------------------------------------------------------------------------------------------

// As Worker::needs_tick.
bool SimWorker::needs_tick() const {
  return pool_.is_anybody_leaving() ||
         std::ranges::any_of(pool_.sessions(), [](const auto& session) { return session->needs_tick(); });
}

bool SimWorker::is_tick_due() const {
  return world_.clock.manual.now_ns() >= next_tick_ns_ && needs_tick();
}

// The descriptors that its event loop watches: those of sessions, not of what is to take a session's place.
bool SimWorker::has_data(const rpc::ClientSession& session) const {
  return session.is_open() && world_.network.is_ready(session.endpoint().data_fd());
}

bool SimWorker::is_control_ready(const rpc::ClientSession& session) const {
  const auto state = session.state();
  if (state != rpc::ClientSession::State::kHandshaking && state != rpc::ClientSession::State::kOpen) return false;
  return world_.network.is_ready(session.endpoint().control_fd());
}

bool SimWorker::has_reason_to_wake() const {
  if (inbox_ || wants_listing_ || is_health_new() || has_answers() || is_tick_due() || !resumable_.empty()) return true;
  return std::ranges::any_of(pool_.sessions(),
                             [&](const auto& session) { return has_data(*session) || is_control_ready(*session); });
}

bool SimWorker::is_asleep() const {
  if (!blocked_ || has_reason_to_wake()) return false;
  return std::ranges::none_of(connections, [](const auto& each) { return each->can_go_on(); });
}

uint64_t SimWorker::next_tick_ns() const {
  return needs_tick() ? next_tick_ns_ : UINT64_MAX;
}

void SimWorker::step() {
  Rng& rng = world_.rng;
  std::vector<Connection*> readable;
  for (const auto& each : connections) {
    if (each->can_go_on() && rng.percent(30)) readable.push_back(each.get());
  }
  if (stopped_ || (blocked_ && !has_reason_to_wake() && readable.empty())) return;
  blocked_ = false;
  active_.begin_pass();
  // An event loop reports what is ready in any order.
  const bool read_first = rng.percent(50);
  if (read_first) {
    for (Connection* each : readable) each->on_readable();
  }
  if (rng.percent(70)) read_inbox();
  for (const auto& session : pool_.sessions()) {
    if (has_data(*session) && world_.network.take_ready(session->endpoint().data_fd())) session->on_data_ready();
    if (is_control_ready(*session)) session->on_control_ready();
  }
  if (is_tick_due()) {
    next_tick_ns_ = world_.clock.manual.now_ns() + world_.scenario.tick_ns;
    for (const auto& session : pool_.sessions()) session->tick();
  }
  if (!read_first) {
    for (Connection* each : readable) each->on_readable();
  }
  take_health();
  run_passes();
  check_ejected();
  if (pool_.is_anybody_leaving()) let_leave();
  tell_if_prepared();
  tell_if_fenced();
  blocked_ = may_block();
}

void SimWorker::run_passes() {
  active_.flush();
  while (true) {
    bool any = active_.fetch();
    any |= resume_connections();
    if (!any) return;
    active_.flush();
  }
}

bool SimWorker::resume_connections() {
  bool any = active_.hand_out_credit();
  any |= pool_.returns().hand_out();
  for (Connection* each : std::exchange(resumable_, {})) {
    each->resume();
    any = true;
  }
  return any;
}

bool SimWorker::may_block() {
  if (has_answers()) return false;
  if (active_.should_spin()) return false;
  bool quiet = active_.prepare_sleep();
  if (!quiet) {
    run_passes();
    quiet = active_.prepare_sleep();
    if (!quiet) run_passes();
    tell_if_prepared();
    tell_if_fenced();
  }
  return quiet && resumable_.empty();
}

// The worker's end: whoever waits is told.
void SimWorker::stop() {
  stopped_ = true;
  for (const auto& each : connections) each->stop();
  for (const auto& session : pool_.sessions()) session->close();
  for (const auto& session : pool_.sessions()) {
    session->credit().announce();
    session->credit().hand_out();
  }
  pool_.returns().announce();
  pool_.returns().hand_out();
  pulls_.close();
  world_.counters.pulled += pull_counters_.pulled.get();
  world_.counters.filled += pull_counters_.filled.get();
  world_.counters.fills_refused += pull_counters_.refused.get();
  pool_.let_leave(UINT64_MAX);
}

base::Status SimWorker::on_session_open(ClientSession& session) {
  // The backend lets a session in when all earlier ones of its worker are over.
  const Known& known = known_.at(&session);
  const uint64_t generation = session.lanes().generation();
  if (generation > 1) world_.history.end_session(session_id(known, generation - 1));
  if (pool_.health().ejected() > 0) state_.health.ring();  // who is about to return has a session more
  tell_if_prepared();
  return base::Status::ok();
}

void SimWorker::on_session_lost(ClientSession& session, const std::string& why, bool was_open) {
  const bool is_expected = stopped_ || pool_.is_leaving(session);
  if (!is_expected && !pool_.health().is_ejected(*pool_.member_of(session).stats)) state_.health.ring();
  world_.counters.sessions_lost += was_open;
  if (world_.is_tracing()) world_.trace(name_ + " no session with " + known_.at(&session).address + ": " + why);
}

std::string SimWorker::describe() const {
  std::string text = name_ + (blocked_ ? " blocked" : " awake");
  for (const Membership::Entry& entry : pool_.membership().all()) {
    if (pool_.health().is_ejected(*entry.stats)) text += " without " + entry.member.name;
  }
  for (const auto& session : pool_.sessions()) {
    text += " [" + known_.at(session.get()).address + (session->is_open() ? "" : " no session") +
            (pool_.is_leaving(*session) ? " leaves" : "") + " " + std::to_string(session->lanes().outstanding()) + "]";
  }
  for (const auto& each : connections) text += "\n    " + each->describe();
  return text;
}

}  // namespace egret::sim
