#include "proxy/pool_control.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log/log.h"
#include "base/text.h"
#include "proxy/log_events.h"
#include "proxy/worker.h"

namespace egret::proxy {

using pool::Membership;

namespace {

constexpr std::chrono::milliseconds kLookAgain{2};
constexpr uint64_t kWarmLonger = 10;         // seconds: members take fills longer than this process sends them
constexpr uint32_t kMostVerdictLines = 100;  // about ejections and returns, in 10 s

// A backend may have so little weight that it gets no keys. That may be intended (to drain it), so it is a warning.
void warn_of_empty_shares(const Membership& membership) {
  for (size_t number = 0; number < membership.members().size(); ++number) {
    if (membership.placement().share_of(number) > 0) continue;
    const pool::Member& member = membership.members()[number].member;
    base::log(kEmptyShare, "backend {} gets no keys: its weight of {} is too small beside the others'",
              member.to_string(), base::field("weight", member.weight), base::field("backend", member.address),
              base::field("backend_name", member.name));
  }
}

// Members that `one` has and `other` has not. One that stays keeps its statistics.
std::vector<pool::Member> missing(const Membership& one, const Membership& other) {
  std::vector<const pool::MemberStats*> known;
  for (const Membership::Entry& entry : other.all()) known.push_back(entry.stats.get());
  std::ranges::sort(known);
  std::vector<pool::Member> only;
  for (const Membership::Entry& entry : one.all()) {
    if (!std::ranges::binary_search(known, entry.stats.get())) only.push_back(entry.member);
  }
  return only;
}

void log_change(const Membership& before, const Membership& now) {
  for (const pool::Member& member : missing(before, now)) {
    base::log(kMemberLeft, "backend {} is no longer in the pool", member.to_string(),
              base::field("backend", member.address), base::field("backend_name", member.name));
  }
  for (const pool::Member& member : missing(now, before)) {
    base::log(kMemberJoined, "backend {} is in the pool now", member.to_string(),
              base::field("backend", member.address), base::field("backend_name", member.name));
  }
}

}  // namespace

PoolControl::PoolControl(events::EventLoop& loop, ProxyState& proxy,
                         const std::vector<std::unique_ptr<Worker>>& workers, std::function<void()> on_pool)
    : loop_(loop),
      proxy_(proxy),
      workers_(workers),
      on_pool_(std::move(on_pool)),
      teller_(loop, *proxy.clock, health_, proxy.changes, *this),
      failover_(loop, *proxy.clock, *this),
      health_(loop, *proxy.clock, proxy.health, *this),
      look_(events::Event::timer<&PoolControl::look>(loop, *this)),
      warm_telling_(loop, *proxy.clock, *this),
      look_at_warm_(events::Event::timer<&PoolControl::look_at_warm_phase>(loop, *this)) {
  health_.set_absences(failover_);
  health_.add_step(teller_);
  health_.add_step(failover_);
}

void PoolControl::take(const Config& config) {
  rule_ = config.placement;
  gutter_.assign(gutter_of(config).begin(), gutter_of(config).end());
  health_.set_options(config.health, config.session);
  teller_.set_options(config.purge_moved, config.session);
  failover_.set_options(config.session);
}

void PoolControl::begin(const Config& config) {
  take(config);
  // resolve_config() has checked the entries.
  directory_ = std::move(discovery::Directory::create(loop_, config.directory, *this).value());
  directory_->start();
  if (!directory_->members().empty()) {
    const Membership first(rule_, directory_->members(), proxy_.workers.size(), {}, gutter_);
    warn_of_empty_shares(first);
    proxy_.joining.set(first);
    proxy_.membership.set(first);
    teller_.tell(proxy_.membership.get());  // there is nothing to wait for
    teller_.put_in_force(proxy_.membership.get());
    failover_.set_membership(proxy_.membership.get());
    health_.set_membership(proxy_.membership.get());
  }
  on_problems(*directory_);
}

void PoolControl::reload(const Config& config) {
  take(config);
  change();
  // resolve_config() has checked the entries. What differs is told by on_members().
  [[maybe_unused]] const base::Status reloaded = directory_->reload(config.directory);
}

void PoolControl::on_members(discovery::Directory& directory) {
  proxy_.sources.set(directory.status());
  change();
}

// Each problem is logged once, when it comes.
void PoolControl::on_problems(discovery::Directory& directory) {
  proxy_.sources.set(directory.status());
  for (const std::string& problem : directory.problems()) {
    if (std::ranges::find(problems_, problem) != problems_.end()) continue;
    static base::LogLimit limit;
    base::log_limited(limit, kMembersUnknown, "backends: {}", base::field("problem", problem));
  }
  if (!problems_.empty() && directory.problems().empty()) base::log(kMembersKnown, "backends: all are known again");
  problems_ = directory.problems();
}

// Changes to the members of the directory as soon as the workers are ready; a change that is under way goes on to these.
void PoolControl::change() {
  const std::span<const pool::Member> members = directory_->members();
  const std::shared_ptr<const Membership> now = proxy_.membership.get();
  const std::shared_ptr<const Membership> newest = proxy_.joining.get();
  if (members.empty() || newest->is_same(rule_, members, gutter_)) return;
  // Those of whom members are being told come before these, too.
  const Membership* const told = next_ != nullptr ? next_.get() : now.get();
  proxy_.joining.set(Membership(rule_, members, proxy_.workers.size(), {newest.get(), told, now.get()}, gutter_));
  teller_.foresee(*proxy_.joining.get());
  for (const auto& worker : workers_) worker->reload();
  if (phase_ == Phase::kNone) open();
}

void PoolControl::open() {
  phase_ = Phase::kOpening;
  deadline_ns_ = proxy_.clock->now_ns() + kMostWaitNs;  // changes that follow one another do not put each other off
  look_.add(kLookAgain);
}

void PoolControl::look() {
  const uint64_t now = proxy_.membership.get()->version(), next = proxy_.joining.get()->version();
  const bool is_ready =
      std::ranges::all_of(workers_, [&](const auto& worker) { return worker->is_prepared(now, next); });
  if (!is_ready && proxy_.clock->now_ns() < deadline_ns_) {
    look_.add(kLookAgain);
    return;
  }
  tell();
}

// From here on the change goes on to these members, whatever others come meanwhile: those are the next change.
void PoolControl::tell() {
  phase_ = Phase::kTelling;
  next_ = proxy_.joining.get();
  if (!teller_.tell(next_)) on_told();
}

void PoolControl::on_told() {
  if (!tell_warm()) finish();
}

// Before keys go by the next members: what they do not know of they do not fill.
bool PoolControl::tell_warm() {
  const std::shared_ptr<const Config> config = proxy_.config.get();
  const bool is_warm = config->warm_for_ns > 0 && pool::WarmPhase::is_of_one_pool(*proxy_.membership.get(), *next_);
  if (!is_warm || warm_told_ == next_->version()) return false;
  warm_told_ = next_->version();
  const uint64_t seconds = config->warm_for_ns / 1'000'000'000 + kWarmLonger;
  warm_telling_.start(*next_, *proxy_.health.get(), config->session, std::min(seconds, op::kMostWarmSeconds));
  return true;
}

void PoolControl::on_warm_told(size_t told, size_t members) {
  if (told < members) {
    static base::LogLimit limit;
    base::log_limited(limit, kWarmNotTold, "{} of {} backends could not be told that the members change",
                      members - told, members);
  }
  finish();
}

void PoolControl::finish() {
  phase_ = Phase::kNone;
  const std::shared_ptr<const Membership> before = proxy_.membership.get();
  const std::shared_ptr<const Membership> now = next_;
  warn_of_empty_shares(*now);
  log_change(*before, *now);
  teller_.put_in_force(now);      // first: no worker asks a member that has not been told
  failover_.set_membership(now);  // likewise: nor one of the gutter that is to be entered anew
  begin_warm_phase();
  proxy_.membership.set(*now);
  for (const auto& worker : workers_) worker->reload();
  health_.set_membership(proxy_.membership.get());
  on_pool_();
  if (proxy_.joining.get()->version() != now->version()) open();
}

// --- telling

void PoolControl::on_held_back(const pool::Member& member, const std::string& why) {
  static base::LogLimit limit(kMostVerdictLines);
  base::log_limited(limit, kMemberHeldBack,
                    "backend {} is held back until it has been told of the change of members: {}", member.to_string(),
                    base::field("why", why.empty() ? "it is ejected" : why), base::field("backend", member.address),
                    base::field("backend_name", member.name));
}

void PoolControl::on_let_in(const pool::Member& member) {
  static base::LogLimit limit(kMostVerdictLines);
  base::log_limited(limit, kMemberLetIn, "backend {} has been told of the change of members", member.to_string(),
                    base::field("backend", member.address), base::field("backend_name", member.name));
}

void PoolControl::on_not_told(const pool::Member& member, const std::string& why) {
  static base::LogLimit limit(kMostVerdictLines);
  base::log_limited(limit, kMemberNotTold, "backend {} has not removed what moved away from it: {}", member.to_string(),
                    base::field("why", why), base::field("backend", member.address),
                    base::field("backend_name", member.name));
}

// --- values that move with their keys

// Before the membership is set. A phase that is on is replaced: the newest members before are those that count.
void PoolControl::begin_warm_phase() {
  const std::shared_ptr<const Membership> before = proxy_.membership.get();
  const std::shared_ptr<const Membership> now = next_;
  const uint64_t lasts_ns = proxy_.config.get()->warm_for_ns;
  if (lasts_ns == 0 || !pool::WarmPhase::is_of_one_pool(*before, *now)) {
    look_at_warm_.del();
    return proxy_.warm.set({});
  }
  warm_until_ns_ = proxy_.clock->now_ns() + lasts_ns;
  proxy_.warm.set({pool::WarmPhase::State::kFencing, now->version(), before, lasts_ns});
  look_at_warm_.add(kLookAgain);
}

void PoolControl::set_warm_phase(pool::WarmPhase phase) {
  proxy_.warm.set(std::move(phase));
  for (const auto& worker : workers_) worker->reload();
}

void PoolControl::look_at_warm_phase() {
  using State = pool::WarmPhase::State;
  const uint64_t now_ns = proxy_.clock->now_ns();
  pool::WarmPhase phase = *proxy_.warm.get();
  if (now_ns >= warm_until_ns_) {
    set_warm_phase({});
    return base::log(kWarmOver, "the values of keys that moved are not brought to their backends any more");
  }
  const uint64_t version = phase.version;
  const bool is_fenced =
      std::ranges::all_of(workers_, [&](const auto& worker) { return worker->fenced_version() == version; });
  if (phase.state == State::kFencing && !is_fenced) {
    look_at_warm_.add(kLookAgain);
    return;
  }
  if (phase.state == State::kFencing) {
    phase.state = State::kOpen;
    set_warm_phase(std::move(phase));
    base::log(kWarmBegun, "for {} s the values of keys that moved are brought to their backends",
              base::field("seconds", (warm_until_ns_ - now_ns + 999'999'999) / 1'000'000'000));
  }
  look_at_warm_.add(std::chrono::microseconds((warm_until_ns_ - now_ns) / 1000 + 1));
}

// --- health

void PoolControl::on_health() {
  for (const auto& worker : workers_) worker->wake();
  on_pool_();
}

void PoolControl::on_verdict(const Membership::Entry& member, const pool::HealthJudge::Verdict& verdict) {
  using Kind = pool::HealthJudge::Verdict::Kind;
  const auto backend = base::field("backend", member.member.address);
  const auto name = base::field("backend_name", member.member.name);
  const std::string whom = member.member.to_string();
  const std::string reason = pool::to_string(verdict.why);
  const auto why = base::field("why", reason);
  static base::LogLimit limit(kMostVerdictLines);
  switch (verdict.kind) {
    case Kind::kEjected:
      return base::log_limited(limit, kMemberEjected, "backend {} is ejected: {}", whom, why, backend, name);
    case Kind::kReturned:
      return base::log_limited(limit, kMemberReturned, "backend {} answers again; it was ejected for {} ms: {}", whom,
                               base::field("ejected_ms", verdict.lasted_ns / 1'000'000), why, backend, name);
    case Kind::kWithheld:
      return base::log_limited(limit, kEjectionWithheld,
                               "backend {} is not ejected, although {}: {} % of the backends are (eject_share)", whom,
                               why, base::field("eject_share", proxy_.config.get()->health.eject_share), backend, name);
    case Kind::kLetIn:
      return base::log_limited(limit, kEjectionWithheld,
                               "backend {} is ejected no more, although {}: more than {} % of the backends would be, "
                               "now that these are fewer (eject_share)",
                               whom, why, base::field("eject_share", proxy_.config.get()->health.eject_share), backend,
                               name);
  }
}

void PoolControl::on_failed_probe(const Membership::Entry& member, const std::string& why) {
  base::log_limited(member.stats->failures, kNoSession, "backend {}, which is ejected, does not answer: {}",
                    member.member.to_string(), base::field("why", why), base::field("backend", member.member.address),
                    base::field("backend_name", member.member.name));
}

// --- failover

bool PoolControl::have_all_taken() const {
  const uint64_t version = proxy_.health.version();
  return std::ranges::all_of(workers_, [&](const auto& worker) { return worker->taken_health() >= version; });
}

bool PoolControl::have_all_fenced() const {
  const uint64_t version = proxy_.health.version();
  return std::ranges::all_of(workers_, [&](const auto& worker) { return worker->fenced_health() >= version; });
}

void PoolControl::ask_gutter() {
  if (!workers_.empty()) workers_.front()->ask_gutter();
}

void PoolControl::on_looked(const Membership::Entry& owner, uint64_t keys, bool is_flush) {
  owner.stats->failover.purged_keys.add(keys);
  if (!is_flush) return;
  owner.stats->failover.flushes.add();
  base::log(kPurgedForOthers, "backend {} is flushed: other proxies have changed keys of it in the gutter",
            owner.member.to_string(), base::field("backend", owner.member.address),
            base::field("backend_name", owner.member.name));
}

void PoolControl::on_stood_in(const Membership::Entry& owner) {
  owner.stats->failover.stands_in.set(1);
  base::log(kFailoverBegun, "the gutter takes the keys of backend {}", owner.member.to_string(),
            base::field("backend", owner.member.address), base::field("backend_name", owner.member.name));
}

void PoolControl::on_cleared(const Membership::Entry& owner, uint64_t keys, bool is_flush) {
  pool::MemberStats::Failover& failover = owner.stats->failover;
  failover.stands_in.set(0);
  failover.purged_keys.add(keys);
  if (is_flush) failover.flushes.add();
  base::log(kFailoverOver, "backend {} has its keys again; purged on it: {}", owner.member.to_string(),
            base::field("purged", is_flush ? "everything" : base::counted(keys, "key")),
            base::field("backend", owner.member.address), base::field("backend_name", owner.member.name));
}

void PoolControl::on_not_entered(const Membership::Entry& gutter, const std::string& why) {
  base::log_limited(gutter.stats->no_stand_in, kNoStandIn, "backend {} of the gutter does not stand in for others: {}",
                    gutter.member.to_string(), base::field("why", why), base::field("backend", gutter.member.address),
                    base::field("backend_name", gutter.member.name));
}

}  // namespace egret::proxy
