#include "sim_control.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pool_world.h"

namespace egret::sim {

using pool::Membership;
using pool::WarmPhase;

namespace {
constexpr std::chrono::milliseconds kLookAgain{2};
constexpr uint64_t kMostWaitNs = 2'000'000'000;
constexpr uint64_t kWarmSeconds = 3600;
SimControl* acting = nullptr;  // the one whose turn it is: connect() has no context
}  // namespace

SimControl::SimControl(PoolWorld& world, ProxyState& state, const std::string& proxy,
                       const std::vector<std::unique_ptr<SimWorker>>& workers)
    : world_(world),
      state_(state),
      proxy_(proxy),
      workers_(workers),
      teller_(loop_, world.control_clock, health_, changes_, *this, &SimControl::connect),
      failover_(loop_, world.control_clock, *this, &SimControl::connect),
      health_(loop_, world.control_clock, state.health, *this, &SimControl::connect),
      warm_telling_(loop_, world.control_clock, *this, &SimControl::connect),
      look_(events::Event::timer<&SimControl::look>(loop_, *this)),
      look_at_warm_(events::Event::timer<&SimControl::look_at_warm_phase>(loop_, *this)) {
  health_.set_absences(failover_);
  health_.add_step(teller_);
  health_.add_step(failover_);
}

SimControl::~SimControl() = default;

// As the network knows it: a path from the proxy, and another connection of it each time.
base::Expected<std::unique_ptr<transport::ClientEndpoint>> SimControl::connect(
    const std::string& address, const transport::ConnectOptions& options) {
  PoolWorld& world = acting->world_;
  return Network::connect(address + "@" + acting->proxy_ + "#" + std::to_string(++world.sessions_made), options);
}

// Times of the control clock.
rpc::SessionOptions SimControl::session_options() const {
  rpc::SessionOptions options = world_.scenario.session;
  options.op_timeout_ns *= ControlClock::kPace;
  options.connect_timeout_ns *= ControlClock::kPace;
  options.backoff_min_ns *= ControlClock::kPace;
  options.backoff_max_ns *= ControlClock::kPace;
  return options;
}

void SimControl::begin(const std::vector<pool::Member>& members, const std::vector<pool::Member>& gutter) {
  const PoolScenario& scenario = world_.scenario;
  pool::HealthOptions health = scenario.health;
  health.probe_first_ns *= ControlClock::kPace;
  health.probe_most_ns *= ControlClock::kPace;
  if (!scenario.judges) health.eject_share = 0;
  health_.set_options(health, session_options());
  teller_.set_options(scenario.tells, session_options(), scenario.patience_ns * ControlClock::kPace);
  failover_.set_options(session_options());
  state_.joining = state_.membership = std::make_shared<const Membership>(
      scenario.rule, members, scenario.workers, std::initializer_list<const Membership*>{}, gutter);
  teller_.tell(state_.membership);
  teller_.put_in_force(state_.membership);
  failover_.set_membership(state_.membership);
  health_.set_membership(state_.membership);
}

void SimControl::change(const std::vector<pool::Member>& members, const std::vector<pool::Member>& gutter) {
  if (state_.joining->is_same(world_.scenario.rule, members, gutter)) return;
  const Membership* const told = next_ != nullptr ? next_.get() : state_.membership.get();
  state_.joining = std::make_shared<const Membership>(
      world_.scenario.rule, members, world_.scenario.workers,
      std::initializer_list<const Membership*>{state_.joining.get(), told, state_.membership.get()}, gutter);
  check_kept();
  teller_.foresee(*state_.joining);
  for (const auto& worker : workers_) worker->reload();
  if (phase_ == Phase::kNone) open();
}

// Who is in force and stays is the same member, whatever was to join meanwhile.
void SimControl::check_kept() const {
  for (const Membership::Entry& now : state_.membership->all()) {
    for (const Membership::Entry& next : state_.joining->all()) {
      const bool is_same = next.member.name == now.member.name && next.member.address == now.member.address;
      if (is_same && next.stats != now.stats) world_.history.fail("a member that stays became another one");
    }
  }
}

void SimControl::step() {
  SimControl* const before = std::exchange(acting, this);
  loop_.run_once(false);
  acting = before;
}

// --- a change of members, through its phases

void SimControl::open() {
  phase_ = Phase::kOpening;
  deadline_ns_ = UINT64_MAX;
  if (world_.scenario.hurried) deadline_ns_ = world_.control_clock.now_ns() + world_.rng.next() % kMostWaitNs;
  look_.add(kLookAgain);
}

void SimControl::look() {
  const uint64_t now = state_.membership->version(), next = state_.joining->version();
  const bool is_ready =
      std::ranges::all_of(workers_, [&](const auto& worker) { return worker->is_prepared(now, next); });
  if (!is_ready && world_.control_clock.now_ns() < deadline_ns_) return look_.add(kLookAgain);
  world_.counters.hurried += !is_ready;
  phase_ = Phase::kTelling;
  next_ = state_.joining;
  if (!teller_.tell(next_)) on_told();
}

void SimControl::on_told() {
  const bool is_warm = world_.scenario.warm_ns > 0 && WarmPhase::is_of_one_pool(*state_.membership, *next_);
  if (!is_warm || warm_told_ == next_->version()) return finish();
  warm_told_ = next_->version();
  warm_telling_.start(*next_, *state_.health.get(), session_options(), kWarmSeconds);
}

void SimControl::finish() {
  phase_ = Phase::kNone;
  ++world_.counters.changes;
  teller_.put_in_force(next_);
  failover_.set_membership(next_);
  begin_warm_phase();
  state_.membership = next_;
  for (const auto& worker : workers_) worker->reload();
  health_.set_membership(state_.membership);
  if (state_.joining->version() != next_->version()) open();
}

// --- values that move with their keys

void SimControl::begin_warm_phase() {
  const uint64_t lasts_ns = world_.scenario.warm_ns * ControlClock::kPace;
  if (lasts_ns == 0 || !WarmPhase::is_of_one_pool(*state_.membership, *next_)) {
    look_at_warm_.del();
    state_.warm = std::make_shared<const WarmPhase>();
    return;
  }
  warm_until_ns_ = world_.control_clock.now_ns() + lasts_ns;
  state_.warm = std::make_shared<const WarmPhase>(
      WarmPhase{WarmPhase::State::kFencing, next_->version(), state_.membership, lasts_ns});
  look_at_warm_.add(kLookAgain);
}

void SimControl::set_warm_phase(const WarmPhase& phase) {
  state_.warm = std::make_shared<const WarmPhase>(phase);
  for (const auto& worker : workers_) worker->reload();
}

void SimControl::look_at_warm_phase() {
  const uint64_t now_ns = world_.control_clock.now_ns();
  if (now_ns >= warm_until_ns_) return set_warm_phase({});
  WarmPhase phase = *state_.warm;
  const bool is_fenced =
      std::ranges::all_of(workers_, [&](const auto& worker) { return worker->fenced_version() == phase.version; });
  if (phase.state == WarmPhase::State::kFencing && !is_fenced) return look_at_warm_.add(kLookAgain);
  if (phase.state == WarmPhase::State::kFencing) {
    phase.state = WarmPhase::State::kOpen;
    set_warm_phase(phase);
  }
  look_at_warm_.add(std::chrono::microseconds((warm_until_ns_ - now_ns) / 1000 + 1));
}

// --- what the production code tells

void SimControl::on_verdict(const Membership::Entry& member, const pool::HealthJudge::Verdict& verdict) {
  using What = pool::HealthJudge::Verdict::Kind;
  PoolCounters& counters = world_.counters;
  const bool is_ejected = verdict.kind == What::kEjected;
  counters.ejected_unreachable += is_ejected && verdict.why == pool::EjectReason::kUnreachable;
  counters.ejected_slow += is_ejected && verdict.why == pool::EjectReason::kTimeouts;
  counters.returned += verdict.kind == What::kReturned;
  counters.withheld += verdict.kind == What::kWithheld;
  if (is_ejected) check_share(member.stats.get());
  static constexpr const char* kWhat[] = {"ejects ", "lets in ", "would eject ", "tries on "};
  trace(kWhat[static_cast<size_t>(verdict.kind)] + member.member.name + ": " + word_of(verdict.why));
}

// The gutter's are all ejected that must be. Where there is one, a single owner may be, whatever the share.
void SimControl::check_share(const pool::MemberStats* member) {
  const auto members = state_.membership->members();
  const bool is_owner =
      std::ranges::any_of(members, [&](const Membership::Entry& entry) { return entry.stats.get() == member; });
  const auto out = static_cast<size_t>(std::ranges::count_if(
      members, [](const Membership::Entry& entry) { return entry.stats->health.is_ejected.get() != 0; }));
  const bool is_stood_in_for = out == 1 && world_.scenario.gutter > 0;
  if (is_owner && !is_stood_in_for && out * 100 > members.size() * world_.scenario.health.eject_share) {
    world_.history.fail("more members are ejected than allowed");
  }
}

void SimControl::on_failed_probe(const Membership::Entry& member, const std::string& why) {
  ++world_.counters.failed_probes;
  world_.counters.given_up += why.starts_with("it answers");
  trace(member.member.name + " does not return: " + why);
}

bool SimControl::have_all_taken() const {
  return std::ranges::all_of(workers_,
                             [&](const auto& worker) { return worker->taken_health() >= state_.health.version(); });
}

bool SimControl::have_all_fenced() const {
  return std::ranges::all_of(workers_,
                             [&](const auto& worker) { return worker->fenced_health() >= state_.health.version(); });
}

void SimControl::ask_gutter() {
  if (!workers_.empty()) workers_.front()->ask_gutter();
}

void SimControl::on_stood_in(const Membership::Entry& owner) {
  ++world_.counters.entered;
  trace("the gutter stands in for " + owner.member.name);
}

void SimControl::on_cleared(const Membership::Entry& owner, uint64_t keys, bool is_flush) {
  ++world_.counters.cleared;
  world_.counters.purged += keys;
  world_.counters.flushed_owners += is_flush;
  trace(owner.member.name + " is purged of " + (is_flush ? "everything" : std::to_string(keys)));
}

void SimControl::on_looked(const Membership::Entry& owner, uint64_t keys, bool is_flush) {
  ++world_.counters.looked;
  trace(owner.member.name + " is purged for others of " + (is_flush ? "everything" : std::to_string(keys)));
}

void SimControl::on_held_back(const pool::Member& member, const std::string& why) {
  ++world_.counters.held_back;
  trace(member.name + " is held back: " + why);
}

void SimControl::on_let_in(const pool::Member& member) {
  ++world_.counters.let_in;
  trace(member.name + " is told, and not held back any more");
}

void SimControl::on_not_told(const pool::Member& member, const std::string& why) {
  ++world_.counters.not_told;
  trace(member.name + " is not told: " + why);
}

void SimControl::trace(const std::string& line) const {
  if (world_.is_tracing()) world_.trace(proxy_ + " " + line);
}

}  // namespace egret::sim
