#include "sim_gutter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pool/gutter/stand_in.h"
#include "pool_world.h"

namespace egret::sim {

using pool::Absent;
using pool::Dialogue;
using pool::Entering;
using pool::Failover;
using pool::Membership;
using pool::MemberStats;
using pool::Purging;
using pool::Reading;

namespace {
constexpr uint64_t kEnterAgainNs = 30'000;
}  // namespace

class SimGutter::Talk final : private SimErrandOwner {
 public:
  Talk(PoolWorld& world, const std::string& path, std::unique_ptr<Dialogue> dialogue)
      : dialogue_(std::move(dialogue)), errand_(world, path, *this) {}

  Dialogue& dialogue() { return *dialogue_; }
  SimErrand& errand() { return errand_; }
  bool is_ok() const { return is_ok_ && dialogue_->fault().empty(); }

 private:
  static Dialogue::Send sender(SimErrand& errand) {
    return [&errand](const op::Op& op, uint32_t partition, uint64_t tag) {
      errand.send(op, partition == Dialogue::kOfKey ? SimErrand::kOfKey : partition, tag);
    };
  }
  void on_errand_open(SimErrand& errand, uint32_t partitions) override {
    dialogue_->begin(errand.grant().epoch, partitions, sender(errand));
  }
  void on_errand_result(SimErrand& errand, uint64_t tag, const op::Result& result) override {
    dialogue_->on_answer(tag, result, sender(errand));
  }
  void on_errand_over(SimErrand&, bool is_ok) override { is_ok_ = is_ok; }

  const std::unique_ptr<Dialogue> dialogue_;
  bool is_ok_ = false;
  SimErrand errand_;
};

struct SimGutter::Standing {
  explicit Standing(uint64_t tag) : failover(tag) {}

  Failover failover;
  std::map<Owner, std::unique_ptr<Talk>> talks;  // by whom it is with
  std::map<Owner, uint64_t> enter_again_ns;
  Done done;
  Failover::State since_state = Failover::State::kServing;
  uint64_t since_ns = 0;
  Absent published;
};

SimGutter::SimGutter(PoolWorld& world, const std::string& proxy, SimGutterObserver& observer)
    : world_(world), proxy_(proxy), observer_(observer) {}

SimGutter::~SimGutter() = default;

void SimGutter::stop() {
  standings_.clear();
}

const Membership::Entry* SimGutter::entry_of(const MemberStats* member) const {
  const auto all = membership_->all();
  const auto at = std::ranges::find(all, member, [](const Membership::Entry& entry) { return entry.stats.get(); });
  return at != all.end() ? &*at : nullptr;
}

void SimGutter::set_membership(std::shared_ptr<const Membership> membership) {
  membership_ = std::move(membership);
  std::vector<const MemberStats*> gutter, owners;
  for (const Membership::Entry& entry : membership_->gutter()) gutter.push_back(entry.stats.get());
  for (const Membership::Entry& entry : membership_->members()) owners.push_back(entry.stats.get());
  std::erase_if(standings_, [&](const auto& each) { return std::ranges::find(owners, each.first) == owners.end(); });
  for (const auto& [owner, standing] : standings_) {
    std::erase_if(standing->talks, [&](const auto& talk) { return entry_of(talk.first) == nullptr; });
    standing->failover.on_gutter(gutter);
  }
  is_rung_ = true;
}

Absent SimGutter::absent(const MemberStats& member) {
  const bool is_owner = std::ranges::any_of(
      membership_->members(), [&](const Membership::Entry& entry) { return entry.stats.get() == &member; });
  if (membership_->gutter().empty() || !is_owner) return {.member = &member};
  auto known = standings_.find(&member);
  if (known == standings_.end()) {
    const uint64_t tag = pool::tag_of(entry_of(&member)->member.name);
    known = standings_.emplace(&member, std::make_unique<Standing>(tag)).first;
    std::vector<const MemberStats*> gutter;
    for (const Membership::Entry& entry : membership_->gutter()) gutter.push_back(entry.stats.get());
    known->second->failover.on_gutter(gutter);
  }
  Standing& standing = *known->second;
  if (standing.failover.state() == Failover::State::kServing) {
    standing.failover.on_ejected();
    standing.enter_again_ns.clear();
    is_rung_ = true;
  }
  return standing.published = standing.failover.absent(&member);
}

void SimGutter::begin(const MemberStats& member, Done done) {
  const auto known = standings_.find(&member);
  if (known == standings_.end() || known->second->failover.state() == Failover::State::kServing) return done(true);
  if (!known->second->failover.readmit()) return done(false);
  known->second->talks.clear();
  known->second->done = std::move(done);
  is_rung_ = true;
}

void SimGutter::cancel(const MemberStats& member) {
  const auto known = standings_.find(&member);
  if (known == standings_.end()) return;
  known->second->done = nullptr;
  known->second->talks.clear();
  known->second->failover.give_up();
}

void SimGutter::step() {
  for (const auto& [owner, standing] : standings_) {
    std::vector<Owner> over;
    for (const auto& [with, talk] : standing->talks) {
      talk->errand().step();
      if (talk->errand().is_over()) over.push_back(with);
    }
    for (const Owner with : over) {
      const std::unique_ptr<Talk> talk = std::move(standing->talks.at(with));
      standing->talks.erase(with);
      take_answer(owner, *standing, with, talk->dialogue(), talk->is_ok());
      is_rung_ = true;
    }
  }
  if (!std::exchange(is_rung_, false) && world_.clock.manual.now_ns() < next_look_ns_) return;
  next_look_ns_ = world_.clock.manual.now_ns() + world_.scenario.tick_ns;
  for (const auto& [owner, standing] : standings_) advance(owner, *standing);
}

bool SimGutter::is_asleep() const {
  if (is_rung_ || next_tick_ns() <= world_.clock.manual.now_ns()) return false;
  return std::ranges::all_of(standings_, [](const auto& each) {
    return std::ranges::all_of(each.second->talks, [](const auto& talk) { return talk.second->errand().is_asleep(); });
  });
}

uint64_t SimGutter::next_tick_ns() const {
  uint64_t next = UINT64_MAX;
  for (const auto& [owner, standing] : standings_) {
    // One who stands in undisturbed waits for nothing but a probe.
    const bool is_undisturbed =
        standing->failover.state() == Failover::State::kStandingIn && standing->failover.to_enter().empty();
    if (standing->failover.state() != Failover::State::kServing && !is_undisturbed)
      next = std::min(next, next_look_ns_);
    for (const auto& [with, talk] : standing->talks) next = std::min(next, talk->errand().next_tick_ns());
  }
  return next;
}

void SimGutter::advance(Owner owner, Standing& standing) {
  if (standing.failover.state() == Failover::State::kServing) return;
  while (true) {
    if (standing.failover.absent(owner) != standing.published) observer_.on_absence();
    if (!move_on(owner, standing)) break;
    if (standing.failover.state() == Failover::State::kServing) return finish(standing);
  }
  if (is_late(standing)) return fail(standing);
  using State = Failover::State;
  const bool is_away = standing.failover.state() == State::kLeaving || standing.failover.state() == State::kStandingIn;
  if (standing.done != nullptr && is_away) fail(standing);
}

bool SimGutter::move_on(Owner owner, Standing& standing) {
  using State = Failover::State;
  Failover& failover = standing.failover;
  const State before = failover.state();
  const bool is_new = before != std::exchange(standing.since_state, before);
  if (is_new && before != State::kLast) standing.since_ns = world_.clock.manual.now_ns();
  if (before == State::kLeaving && observer_.has_taken()) failover.on_left();
  if (before == State::kOpening && owner->open_sessions() == owner->sessions.size()) failover.on_opened();
  if (before == State::kPausing && observer_.has_fenced()) failover.on_fenced();
  return failover.state() != before || ask(owner, standing);
}

bool SimGutter::ask(Owner owner, Standing& standing) {
  Failover& failover = standing.failover;
  for (const Owner member : failover.to_enter()) {
    if (standing.enter_again_ns[member] > world_.clock.manual.now_ns()) continue;
    talk(standing, member, std::make_unique<Entering>(failover.tag()));
  }
  for (const Owner member : failover.to_read()) {
    talk(standing, member, std::make_unique<Reading>(failover.tag(), failover.places(member)));
  }
  if (!failover.is_purge_due()) return false;
  if (failover.keys().empty() && !failover.is_flush_due()) {
    failover.on_purged();
    return true;
  }
  talk(standing, owner, std::make_unique<Purging>(failover.keys(), failover.is_flush_due()));
  return false;
}

void SimGutter::talk(Standing& standing, Owner with, std::unique_ptr<Dialogue> dialogue) {
  if (standing.talks.contains(with)) return;
  standing.talks[with] =
      std::make_unique<Talk>(world_, entry_of(with)->member.address + "@" + proxy_, std::move(dialogue));
}

void SimGutter::take_answer(Owner owner, Standing& standing, Owner with, Dialogue& dialogue, bool is_ok) {
  Failover& failover = standing.failover;
  if (with == owner) {
    if (!is_ok) return fail(standing);
    world_.counters.purged += failover.keys().size();
    world_.counters.flushed_owners += failover.is_flush_due();
    failover.on_purged();
  } else if (auto* const reading = dynamic_cast<Reading*>(&dialogue)) {
    if (is_ok) {
      failover.on_read(with, reading->places(), reading->take_keys(), reading->is_complete());
    } else {
      failover.on_not_read(with);
    }
  } else if (is_ok) {
    failover.on_entered(with, static_cast<Entering&>(dialogue).places());
    ++world_.counters.entered;
  } else {
    standing.enter_again_ns[with] = world_.clock.manual.now_ns() + kEnterAgainNs;
  }
  if (failover.state() == Failover::State::kServing) finish(standing);
}

void SimGutter::finish(Standing& standing) {
  standing.since_state = Failover::State::kServing;
  standing.talks.clear();
  ++world_.counters.cleared;
  if (const Done done = std::exchange(standing.done, nullptr)) done(true);
}

void SimGutter::fail(Standing& standing) {
  standing.talks.clear();
  standing.failover.give_up();
  ++world_.counters.given_up;
  observer_.on_absence();
  if (const Done done = std::exchange(standing.done, nullptr)) done(false);
}

bool SimGutter::is_late(const Standing& standing) const {
  using State = Failover::State;
  const State state = standing.failover.state();
  const bool ops_wait = state == State::kPausing || state == State::kLast;
  const rpc::SessionOptions& session = world_.scenario.session;
  const uint64_t most_ns = ops_wait ? session.op_timeout_ns : session.connect_timeout_ns;
  return (ops_wait || state == State::kOpening) && world_.clock.manual.now_ns() - standing.since_ns > most_ns;
}

}  // namespace egret::sim
