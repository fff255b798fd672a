#include "sim_proxy.h"

#include <algorithm>
#include <utility>

#include "pool/gutter/stand_in.h"
#include "pool_world.h"

namespace egret::sim {

using pool::Membership;
using rpc::ClientSession;

SimProxy::SimProxy(PoolWorld& world, uint32_t number)
    : world_(world),
      number_(number),
      name_("p" + std::to_string(number)),
      health_(world, name_),
      pool_([this](const Membership::Entry& entry) { return make_session(entry); }),
      pull_memory_(world.rng),
      pulls_(pool_, world.clock, pull_counters_, pull_memory_, next_upload_),
      options_(world.scenario.session) {
  options_.window = world.scenario.layout.window;
  for (uint32_t i = 0; i < world.scenario.connections; ++i)
    connections.push_back(std::make_unique<Connection>(*this, i));
}

SimProxy::~SimProxy() {
  connections.clear();
}

std::unique_ptr<ClientSession> SimProxy::make_session(const Membership::Entry& entry) {
  const uint64_t serial = ++world_.sessions_made;
  rpc::SessionOptions options = options_;
  options.address = entry.member.address + "@" + name_ + "#" + std::to_string(serial);
  options.worker_id = serial;
  auto session =
      std::make_unique<ClientSession>(options, world_.clock, *this, Network::connect, entry.stats->sessions[0]);
  known_[session.get()] = {.address = options.address,
                           .serial = serial,
                           .backend = static_cast<uint32_t>(std::stoul(entry.member.address.substr(1)))};
  return session;
}

void SimProxy::set_op_timeout(uint64_t ns) {
  options_.op_timeout_ns = ns;
  for (const auto& session : pool_.sessions()) session->set_options(options_);
}

// --- members -------------------------------------------------------------------------------------------------------

void SimProxy::change(const std::vector<pool::Member>& members) {
  const std::vector<pool::Member> gutter = world_.gutter();
  if (joining_->is_same(world_.scenario.rule, members, gutter)) return;
  joining_ = std::make_shared<const Membership>(
      world_.scenario.rule, members, 1, std::initializer_list<const Membership*>{joining_.get(), told_.get()}, gutter);
  inbox_ = true;
}

void SimProxy::finish_change() {
  if (!is_changing()) return;
  ++world_.counters.changes;
  world_.counters.hurried += !pool_.is_ready_for(*joining_);
  told_ = joining_;
  health_.set_membership(told_);
  inbox_ = true;
}

bool SimProxy::is_settled() const {
  return pool_.membership().version() == joining_->version() && pool_.is_ready_for(*joining_) &&
         !pool_.is_anybody_leaving() && pool_.health().ejected() == 0 && !is_health_new();
}

// As Worker::take_membership.
void SimProxy::take_membership() {
  std::vector<ClientSession*> fresh;
  if (told_->version() != pool_.membership().version()) {
    std::map<std::string, const ClientSession*> before;
    for (const auto& session : pool_.serving()) before[pool_.member_of(*session).member.name] = session.get();
    fresh = pool_.apply(told_, world_.clock.manual.now_ns());
    begin_warm();
    check_members(before);
    if (world_.is_tracing()) {
      std::string names;
      for (const Membership::Entry& entry : told_->members()) names += " " + entry.member.name;
      world_.trace(name_ + " keys go by" + names);
    }
  }
  if (joining_->version() > pool_.membership().version()) {
    for (ClientSession* session : pool_.prepare(*joining_)) fresh.push_back(session);
  }
  for (ClientSession* session : fresh) session->start();
  pool_.take(health_.published());
  note_health();
}

bool SimProxy::is_health_new() const {
  return world_.scenario.judges && health_.published()->version() != pool_.health().version();
}

// As Worker::take_health.
void SimProxy::take_health() {
  if (is_fencing_) note_fence();
  if (!is_health_new()) return;
  pool_.take(health_.published());
  note_health();
}

void SimProxy::note_health() {
  const pool::Health& health = pool_.health();
  health_.on_taken(health.version());
  const bool anybody_waits =
      std::ranges::any_of(health.absent(), [](const auto& each) { return each.how == pool::Absence::kWaits; });
  if (anybody_waits) {
    std::vector<ClientSession*> sessions;
    for (const auto& session : pool_.gutter()) sessions.push_back(session.get());
    gutter_fence_.start(sessions);
  }
  is_fencing_ = true;
  note_fence();
}

void SimProxy::note_fence() {
  if (!gutter_fence_.is_over()) return;
  is_fencing_ = false;
  health_.on_fenced(pool_.health().version());
}

// After the verdict no request waits: whatever was under way with an ejected member has been answered in the same pass.
void SimProxy::check_ejected() {
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

// The sessions are those of the members, in their order, and who stayed has kept its session.
void SimProxy::check_members(const std::map<std::string, const ClientSession*>& before) {
  const auto members = pool_.membership().members();
  if (pool_.serving().size() != members.size()) return world_.history.fail("a member has no session");
  for (size_t i = 0; i < members.size(); ++i) {
    const ClientSession* session = pool_.serving()[i].get();
    if (!known_.at(session).address.starts_with(members[i].member.address + "@")) {
      return world_.history.fail("the session of a member is with another backend");
    }
    const auto stayed = before.find(members[i].member.name);
    if (stayed == before.end()) continue;
    ++world_.counters.kept_sessions;
    if (stayed->second != session) return world_.history.fail("a member that stayed got another session");
  }
}

pool::Route SimProxy::route(const std::string& key) {
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

// Keys go by the next members when each partition of theirs has removed what belongs to others.
void SimProxy::tell_backends() {
  if (telling_version_ != joining_->version()) {
    telling_version_ = joining_->version();
    const auto of = [](const Membership& membership) {
      std::vector<pool::Member> members;
      for (const Membership::Entry& entry : membership.members()) members.push_back(entry.member);
      return members;
    };
    const MemberChange change{world_.scenario.rule, of(*told_), of(*joining_)};
    for (const auto& session : pool_.sessions()) {
      const std::string& name = pool_.member_of(*session).member.name;
      const bool is_told = change.has_next(name) ||
                           (world_.scenario.tells == PoolScenario::Tells::kLeaving && !pool_.is_leaving(*session));
      if (!is_told || !session->is_open()) continue;
      for (uint32_t lane = 0; lane < session->lanes().count(); ++lane) {
        tellings_.emplace_back(change, name, *session, lane);
        ++world_.counters.told;
      }
    }
  }
  bool done = true;
  for (MemberTelling& telling : tellings_) done &= telling.go_on();
  if (done && tell_warm()) finish_change();
}

// --- values that move with their keys -----------------------------------------------------------------------------

// Each partition of the next members knows that the change is warm before keys go there. Returns whether that is so.
bool SimProxy::tell_warm() {
  if (world_.scenario.warm_ns == 0) return true;
  if (warm_told_ != joining_->version()) {
    warm_told_ = joining_->version();
    for (const auto& session : pool_.sessions()) {
      const auto members = joining_->members();
      const bool is_next = std::ranges::any_of(
          members, [&](const Membership::Entry& entry) { return entry.stats == pool_.member_of(*session).stats; });
      if (!is_next || !session->is_open()) continue;
      for (uint32_t lane = 0; lane < session->lanes().count(); ++lane) warm_tellings_.emplace_back(*session, lane);
    }
  }
  bool done = true;
  for (WarmTelling& telling : warm_tellings_) done &= telling.go_on();
  return done;
}

// In the same pass as Pool::apply().
void SimProxy::begin_warm() {
  const std::shared_ptr<const Membership> before = std::exchange(in_force_, told_);
  if (world_.scenario.warm_ns == 0 || before->members().empty()) return;
  pulls_.keep(before);
  warm_until_ns_ = world_.clock.manual.now_ns() + world_.scenario.warm_ns;
}

bool SimProxy::is_warm_due() const {
  if (warm_until_ns_ == 0) return false;
  return world_.clock.manual.now_ns() >= warm_until_ns_ || (!pulls_.is_open() && pulls_.is_fenced());
}

void SimProxy::go_on_warm() {
  if (!is_warm_due()) return;
  if (world_.clock.manual.now_ns() >= warm_until_ns_) {
    warm_until_ns_ = 0;
    return pulls_.close();
  }
  if (world_.rng.percent(50)) pulls_.open();
}

void SimProxy::let_leave() {
  for (const auto& session : pool_.sessions()) {
    const bool is_busy = session->is_open() && session->lanes().outstanding() > 0;
    world_.counters.left_under_way += is_busy && pool_.is_leaving(*session);
  }
  for (const ClientSession* gone : pool_.let_leave(world_.clock.manual.now_ns())) {
    known_.erase(gone);
    for (MemberTelling& telling : tellings_) telling.on_gone(*gone);
    for (WarmTelling& telling : warm_tellings_) telling.on_gone(*gone);
  }
}

// --- the worker's loop ---------------------------------------------------------------------------------------------

// As Worker::needs_tick.
bool SimProxy::needs_tick() const {
  return pool_.is_anybody_leaving() ||
         std::ranges::any_of(pool_.sessions(), [](const auto& session) { return session->needs_tick(); });
}

bool SimProxy::is_tick_due() const {
  return world_.clock.manual.now_ns() >= next_tick_ns_ && needs_tick();
}

bool SimProxy::has_reason_to_wake() const {
  if (inbox_ || is_warm_due() || is_health_new() || (is_fencing_ && gutter_fence_.is_over()) || is_tick_due() ||
      !resumable_.empty())
    return true;
  if (is_changing() && pool_.is_ready_for(*joining_)) return true;
  return std::ranges::any_of(pool_.sessions(), [&](const auto& session) {
    const std::string& address = known_.at(session.get()).address;
    return world_.network.has_client_wake(address) || world_.network.is_client_control_ready(address);
  });
}

bool SimProxy::is_asleep() const {
  if (!blocked_ || has_reason_to_wake()) return false;
  return std::ranges::none_of(connections, [](const auto& each) { return each->can_go_on(); });
}

uint64_t SimProxy::next_tick_ns() const {
  const uint64_t tick_ns = needs_tick() ? next_tick_ns_ : UINT64_MAX;
  return warm_until_ns_ != 0 ? std::min(tick_ns, warm_until_ns_) : tick_ns;
}

void SimProxy::step() {
  Rng& rng = world_.rng;
  std::vector<Connection*> readable;
  for (const auto& each : connections) {
    if (each->can_go_on() && rng.percent(30)) readable.push_back(each.get());
  }
  if (stopped_ || (blocked_ && !has_reason_to_wake() && readable.empty())) return;
  blocked_ = false;
  for (const auto& session : pool_.sessions()) session->begin_pass();
  if (is_changing() && pool_.is_ready_for(*joining_)) {
    if (world_.scenario.tells != PoolScenario::Tells::kNobody) {
      tell_backends();
    } else if (tell_warm() && rng.percent(30)) {
      finish_change();
    }
  }
  go_on_warm();
  // An event loop reports what is ready in any order.
  const bool read_first = rng.percent(50);
  if (read_first) {
    for (Connection* each : readable) each->on_readable();
  }
  if (inbox_ && rng.percent(70)) {
    inbox_ = false;
    take_membership();
  }
  for (const auto& session : pool_.sessions()) {
    const std::string& address = known_.at(session.get()).address;
    if (world_.network.take_client_wake(address) && session->is_open()) session->on_data_ready();
    if (world_.network.is_client_control_ready(address)) session->on_control_ready();
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
  blocked_ = may_block();
}

void SimProxy::run_passes() {
  const auto flush = [&] {
    for (const auto& session : pool_.sessions()) session->flush();
  };
  flush();
  while (true) {
    bool any = false;
    for (const auto& session : pool_.sessions()) any |= session->fetch();
    any |= resume_connections();
    if (!any) return;
    flush();
  }
}

bool SimProxy::resume_connections() {
  bool any = false;
  for (const auto& session : pool_.sessions()) any |= session->credit().hand_out();
  any |= pool_.returns().hand_out();
  for (Connection* each : std::exchange(resumable_, {})) {
    each->resume();
    any = true;
  }
  return any;
}

bool SimProxy::may_block() {
  if (is_fencing_ && gutter_fence_.is_over()) return false;
  for (const auto& session : pool_.sessions()) {
    if (session->is_open() && session->should_spin()) return false;
  }
  const auto is_quiet = [&] {
    bool quiet = true;
    for (const auto& session : pool_.sessions()) quiet &= session->prepare_sleep();
    return quiet;
  };
  bool quiet = is_quiet();
  if (!quiet) {
    run_passes();
    quiet = is_quiet();
    if (!quiet) run_passes();
  }
  return quiet && resumable_.empty();
}

// The worker's end: whoever waits is told.
void SimProxy::stop() {
  stopped_ = true;
  health_.stop();
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

base::Status SimProxy::on_session_open(ClientSession& session) {
  health_.on_opened();
  // The backend lets a session in when all earlier ones of its worker are over.
  const Known& known = known_.at(&session);
  const uint64_t generation = session.lanes().generation();
  if (generation > 1) world_.history.end_session(session_id(known, generation - 1));
  return base::Status::ok();
}

void SimProxy::on_session_lost(ClientSession& session, const std::string& why, bool was_open) {
  const bool is_expected = stopped_ || pool_.is_leaving(session);
  if (!is_expected && !pool_.health().is_ejected(*pool_.member_of(session).stats)) health_.ring();
  world_.counters.sessions_lost += was_open;
  if (world_.is_tracing()) world_.trace(name_ + " no session with " + known_.at(&session).address + ": " + why);
}

std::string SimProxy::describe() const {
  std::string text =
      name_ + (blocked_ ? " blocked" : " awake") + (is_changing() ? ", members change" : "") + health_.describe();
  for (const auto& session : pool_.sessions()) {
    text += " [" + known_.at(session.get()).address + (session->is_open() ? "" : " no session") +
            (pool_.is_leaving(*session) ? " leaves" : "") + " " + std::to_string(session->lanes().outstanding()) + "]";
  }
  for (const auto& each : connections) text += "\n    " + each->describe();
  return text;
}

}  // namespace egret::sim
