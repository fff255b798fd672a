#include "pool/gutter/gutter_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/random.h"
#include "pool/errand.h"
#include "pool/gutter/stand_in.h"

namespace egret::pool {

using base::Status;
using events::Event;

namespace {

constexpr std::chrono::milliseconds kTick{20};  // for what is late, and for those to be entered again

// Up to where somebody has purged an owner of what was changed on each of the gutter that knows of it.
std::map<const MemberStats*, Places> purged_places(const Listing& listing, uint64_t tag) {
  std::map<const MemberStats*, Places> places;
  for (const Listed& listed : listing) {
    if (listed.owner.tag != tag) continue;
    Places& place = places[listed.gutter.get()];
    place.epoch = listed.epoch;
    place.cursors.resize(listed.partitions, op::kOldestChange);
    place.cursors[listed.partition] = listed.owner.purged;
  }
  return places;
}

}  // namespace

// --- one dialogue with one member

class GutterWatch::Talk final : private ErrandOwner {
 public:
  Talk(GutterWatch& watch, Owner owner, const Membership::Entry& with, std::unique_ptr<Dialogue> dialogue)
      : watch_(watch),
        owner_(owner),
        with_(with.stats.get()),
        dialogue_(std::move(dialogue)),
        errand_(watch.loop_, watch.clock_, options(watch, with), *this, watch.connect_) {
    errand_.start();
  }
  Dialogue& dialogue() { return *dialogue_; }

 private:
  static rpc::SessionOptions options(const GutterWatch& watch, const Membership::Entry& with) {
    rpc::SessionOptions options = Errand::options(watch.session_, with.member.address);
    options.response_slot_size = Reading::kSlot;
    return options;
  }
  Dialogue::Send sender(Errand& errand) {
    return [&errand](const op::Op& op, uint32_t partition, uint64_t tag) {
      errand.send(op, partition == Dialogue::kOfKey ? Errand::kOfKey : partition, tag);
    };
  }
  void on_errand_open(Errand& errand, uint32_t partitions) override {
    dialogue_->begin(errand.grant().epoch, partitions, sender(errand));
  }
  void on_errand_result(Errand& errand, uint64_t tag, const op::Result& result) override {
    dialogue_->on_answer(tag, result, sender(errand));
  }
  void on_errand_over(Errand&, const Status& status) override {
    const Status outcome = status && !dialogue_->fault().empty() ? Status::error(dialogue_->fault()) : status;
    watch_.on_talk_over(owner_, with_, outcome);  // `this` is destroyed
  }

  GutterWatch& watch_;
  const Owner owner_;
  const MemberStats* const with_;
  const std::unique_ptr<Dialogue> dialogue_;
  Errand errand_;
};

struct GutterWatch::Standing {
  explicit Standing(uint64_t tag) : failover(tag) {}

  Failover failover;
  std::map<const MemberStats*, std::unique_ptr<Talk>> talks;  // by whom it is with
  std::map<const MemberStats*, uint64_t> enter_again_ns;      // not before
  Done done;                                                  // of the readmission under way
  Failover::State since_state = Failover::State::kServing;
  uint64_t since_ns = 0;    // when it was in another state last
  uint64_t keys = 0;        // purged in this absence
  bool is_flushed = false;  // in this absence
  bool is_told = false;     // on_stood_in() was called in this absence
  Absent published;         // what was said of it last
};

// --- GutterWatch

GutterWatch::GutterWatch(events::EventLoop& loop, const base::Clock& clock, GutterObserver& observer,
                         rpc::ClientSession::Connect connect)
    : loop_(loop),
      clock_(clock),
      observer_(observer),
      connect_(connect),
      looks_(loop, clock, observer, connect),
      look_(Event::timer<&GutterWatch::look>(loop, *this)),
      round_(Event::timer<&GutterWatch::begin_round>(loop, *this)) {}

GutterWatch::~GutterWatch() = default;

void GutterWatch::set_options(const rpc::SessionOptions& session) {
  session_ = session;
  session_.op_timeout_ns = std::min(session.op_timeout_ns, session.connect_timeout_ns);
  looks_.set_options(session_);
}

void GutterWatch::set_membership(std::shared_ptr<const Membership> membership) {
  const std::shared_ptr<const Membership> before = std::exchange(membership_, std::move(membership));
  std::erase_if(standings_, [&](const auto& standing) { return !is_owner(standing.first); });
  std::vector<const MemberStats*> gutter;
  for (const Membership::Entry& entry : membership_->gutter()) gutter.push_back(entry.stats.get());
  for (const auto& [owner, standing] : standings_) {
    std::erase_if(standing->talks, [&](const auto& talk) { return entry_of(talk.first) == nullptr; });
    standing->failover.on_gutter(gutter, Failover::Keys::kMoved);
  }
  looks_.set_membership(membership_);
  if (gutter.empty()) {
    round_.del();
  } else if (!round_.pending()) {
    begin_round();
  }
  look();
}

void GutterWatch::begin_round() {
  observer_.ask_gutter();
  constexpr uint64_t kFifth = kLookNs / 5;
  round_.add(std::chrono::microseconds((kLookNs - kFifth + base::random_u64() % (2 * kFifth)) / 1000));
}

void GutterWatch::take_listing() {
  std::shared_ptr<const Listing> listing = observer_.listing();
  if (listing == nullptr || listing == listing_) return;
  listing_ = std::move(listing);
  const auto is_absent = [this](const MemberStats& owner) {
    const auto known = standings_.find(&owner);
    return known != standings_.end() && known->second->failover.state() != Failover::State::kServing;
  };
  for (const auto& [owner, standing] : standings_) {
    if (standing->failover.state() != Failover::State::kServing) continue;  // a listing is no reading of a round
    const std::map<const MemberStats*, Places> places = purged_places(*listing_, standing->failover.tag());
    for (const auto& [gutter, place] : places) standing->failover.on_read(gutter, place, {}, true);
  }
  looks_.on_listing(*listing_, is_absent);
}

const Membership::Entry* GutterWatch::entry_of(const MemberStats* member) const {
  const auto at =
      std::ranges::find(membership_->all(), member, [](const Membership::Entry& entry) { return entry.stats.get(); });
  return at != membership_->all().end() ? &*at : nullptr;
}

bool GutterWatch::is_owner(const MemberStats* member) const {
  return std::ranges::any_of(membership_->members(),
                             [&](const Membership::Entry& entry) { return entry.stats.get() == member; });
}

// Of a member that is ejected. Nothing is asked in this call: look() follows.
Absent GutterWatch::absent(const MemberStats& member) {
  auto known = standings_.find(&member);
  if (known == standings_.end()) {
    if (membership_->gutter().empty() || !is_owner(&member)) return {.member = &member};
    known = standings_.emplace(&member, std::make_unique<Standing>(tag_of(entry_of(&member)->member.name))).first;
    std::vector<const MemberStats*> gutter;
    for (const Membership::Entry& entry : membership_->gutter()) gutter.push_back(entry.stats.get());
    known->second->failover.on_gutter(gutter);
  }
  Standing& standing = *known->second;
  if (standing.failover.state() == Failover::State::kServing && !membership_->gutter().empty()) {
    standing.failover.on_ejected();
    standing.enter_again_ns.clear();
    standing.keys = 0;
    standing.is_flushed = standing.is_told = false;
    wait();
  }
  standing.published = standing.failover.absent(&member);
  return standing.published;
}

void GutterWatch::begin(const Membership::Entry& member, Done done) {
  const auto known = standings_.find(member.stats.get());
  if (known == standings_.end() || known->second->failover.state() == Failover::State::kServing) {
    return done(Status::ok());
  }
  if (!known->second->failover.readmit()) return done(Status::error("workers may still send to it"));
  std::erase_if(known->second->talks,
                [](const auto&) { return true; });  // those of the gutter that are not entered yet
  known->second->done = std::move(done);
  advance(known->first, *known->second);
}

void GutterWatch::cancel(const MemberStats& member) {
  const auto known = standings_.find(&member);
  if (known == standings_.end()) return;
  known->second->done = nullptr;
  known->second->talks.clear();
  known->second->failover.give_up();
}

void GutterWatch::look() {
  take_listing();
  const std::shared_ptr<const Membership> membership = membership_;
  for (const Membership::Entry& entry : membership->members()) {
    const auto at = standings_.find(entry.stats.get());
    if (at != standings_.end()) advance(at->first, *at->second);
  }
  wait();
}

void GutterWatch::wait() {
  const bool is_anybody_absent = std::ranges::any_of(
      standings_, [](const auto& each) { return each.second->failover.state() != Failover::State::kServing; });
  if (is_anybody_absent && !look_.pending()) look_.add(kTick);
}

// Does what can be done now; each change of what workers are to do is published before the next step.
void GutterWatch::advance(Owner owner, Standing& standing) {
  if (standing.failover.state() == Failover::State::kServing) return;
  while (true) {
    if (standing.failover.absent(owner) != standing.published) observer_.on_absence();
    if (!step(owner, standing)) break;
    if (standing.failover.state() == Failover::State::kServing) return finish(owner, standing);
  }
  if (is_late(standing)) return fail(standing, "it answers, but what was changed could not be purged on it in time");
  using State = Failover::State;
  const bool is_away = standing.failover.state() == State::kLeaving || standing.failover.state() == State::kStandingIn;
  if (standing.done != nullptr && is_away) fail(standing, "it answers, but the gutter has changed");
}

// Whether the state has changed, or who is entered.
bool GutterWatch::step(Owner owner, Standing& standing) {
  using State = Failover::State;
  Failover& failover = standing.failover;
  const State before = failover.state();
  const bool is_new = before != std::exchange(standing.since_state, before);
  if (is_new && before != State::kLast) standing.since_ns = clock_.now_ns();  // ops have been waiting since kPausing
  switch (before) {
    case State::kServing:
      return false;
    case State::kLeaving:
      if (observer_.have_all_taken()) failover.on_left();
      break;
    case State::kOpening:
      if (owner->open_sessions() == owner->sessions.size()) failover.on_opened();
      break;
    case State::kPausing:
      if (observer_.have_all_fenced()) failover.on_fenced();
      break;
    case State::kStandingIn:
    case State::kCatchingUp:
    case State::kLast:
      break;
  }
  if (failover.state() != before) return true;
  return ask(owner, standing);
}

// Begins the dialogues that are due. True: there was nothing to purge.
bool GutterWatch::ask(Owner owner, Standing& standing) {
  Failover& failover = standing.failover;
  for (const MemberStats* member : failover.to_enter()) {
    if (standing.enter_again_ns[member] > clock_.now_ns()) continue;
    talk(owner, standing, member, std::make_unique<Entering>(failover.tag()));
  }
  for (const MemberStats* member : failover.to_read()) {
    talk(owner, standing, member, std::make_unique<Reading>(failover.tag(), failover.places(member)));
  }
  if (!failover.is_purge_due()) return false;
  if (failover.keys().empty() && !failover.is_flush_due()) {
    failover.on_purged();
    return true;
  }
  talk(owner, standing, owner, std::make_unique<Purging>(failover.keys(), failover.is_flush_due()));
  return false;
}

void GutterWatch::talk(Owner owner, Standing& standing, const MemberStats* with, std::unique_ptr<Dialogue> dialogue) {
  if (standing.talks.contains(with)) return;
  standing.talks[with] = std::make_unique<Talk>(*this, owner, *entry_of(with), std::move(dialogue));
}

void GutterWatch::on_talk_over(Owner owner, const MemberStats* with, const Status& status) {
  Standing& standing = *standings_.at(owner);
  const std::unique_ptr<Talk> over = std::move(standing.talks.at(with));
  standing.talks.erase(with);
  take_answer(owner, standing, with, over->dialogue(), status);
}

void GutterWatch::take_answer(Owner owner, Standing& standing, const MemberStats* with, Dialogue& dialogue,
                              const Status& status) {
  Failover& failover = standing.failover;
  if (with == owner) {
    if (!status) return fail(standing, "it answers, but cannot be purged: " + status.message());
    standing.keys += failover.keys().size();
    standing.is_flushed |= failover.is_flush_due();
    failover.on_purged();
  } else if (auto* const reading = dynamic_cast<Reading*>(&dialogue)) {
    if (status) {
      failover.on_read(with, reading->places(), reading->take_keys(), reading->is_complete());
    } else {
      failover.on_not_read(with);
    }
  } else if (status) {
    failover.on_entered(with, static_cast<Entering&>(dialogue).places());
    if (!std::exchange(standing.is_told, true)) observer_.on_stood_in(*entry_of(owner));
  } else {
    standing.enter_again_ns[with] = clock_.now_ns() + kEnterAgainNs;
    observer_.on_not_entered(*entry_of(with), status.message());
  }
  if (failover.state() == Failover::State::kServing) return finish(owner, standing);
  advance(owner, standing);
}

// It is let in: done() publishes that.
void GutterWatch::finish(Owner owner, Standing& standing) {
  standing.since_state = Failover::State::kServing;
  standing.talks.clear();
  if (standing.is_told) observer_.on_cleared(*entry_of(owner), standing.keys, standing.is_flushed);
  if (const Done done = std::exchange(standing.done, nullptr)) done(Status::ok());
}

void GutterWatch::fail(Standing& standing, const std::string& why) {
  standing.talks.clear();
  standing.failover.give_up();
  observer_.on_absence();
  if (const Done done = std::exchange(standing.done, nullptr)) done(Status::error(why));
}

// What workers wait for, or have to do, must not last.
bool GutterWatch::is_late(Standing& standing) const {
  using State = Failover::State;
  const State state = standing.failover.state();
  const bool ops_wait = state == State::kPausing || state == State::kLast;
  const uint64_t most_ns = ops_wait ? session_.op_timeout_ns : session_.connect_timeout_ns;
  return (ops_wait || state == State::kOpening) && clock_.now_ns() - standing.since_ns > most_ns;
}

}  // namespace egret::pool
