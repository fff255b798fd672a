#include "pool/change/teller.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/random.h"
#include "wire/handshake.h"

namespace egret::pool {

using events::Event;
using op::ResultCode;

namespace {
constexpr std::chrono::microseconds kFirstPause{500};  // between two questions to a partition that is at work
constexpr std::chrono::microseconds kMostPause{16'000};
constexpr std::chrono::milliseconds kLookAgain{50};
constexpr uint32_t kMostDoublings = 2;  // of the pause between two attempts to tell one that does not answer
}  // namespace

// A member that is owed something.
struct Teller::Debtor {
  Member member;
  std::shared_ptr<MemberStats> stats;
  Debt debt;
  uint64_t since = 0;  // the how many-eth debtor it is
  std::unique_ptr<Telling> telling;
  Done done;  // of its readmission
  bool is_waited_for = false;
  bool is_held_back = false;
  uint64_t next_ns = 0;  // not tried before
  uint32_t failures = 0;
  std::string why;  // it could not be reached
};

// --- all partitions of one member are told

class Teller::Telling final : private ErrandOwner {
 public:
  Telling(Teller& teller, Debtor& debtor)
      : teller_(teller),
        debtor_(debtor),
        news_(debtor.debt.news(debtor.member)),
        ends_ns_(teller.clock_.now_ns() + kMostWorkNs),
        pause_(Event::timer<&Telling::on_pause>(teller.loop_, *this)),
        errand_(teller.loop_, teller.clock_, Errand::options(teller.session_, debtor.member.address), *this,
                teller.connect_) {
    errand_.keep_open(true);
    errand_.start();
  }

 private:
  void on_errand_open(Errand& errand, uint32_t partitions) override {
    if ((errand.grant().features & wire::kWarm) == 0) {
      outcome_ = Outcome::kRefused;
      why_ = "it is of a version that knows nothing of this";
      return errand.keep_open(false);
    }
    for (uint32_t number = 0; number < partitions; ++number) {
      partitions_.emplace_back(news_);
      ask(number);
    }
    left_ = partitions;
  }
  void on_errand_result(Errand&, uint64_t number, const op::Result& result) override {
    if (left_ == 0) return;
    const PartitionTelling::Next next = partitions_[number].on_answer(result.code);
    if (next != PartitionTelling::Next::kOver && teller_.clock_.now_ns() >= ends_ns_) return give_up();
    switch (next) {
      case PartitionTelling::Next::kSend:
        return ask(static_cast<uint32_t>(number));
      case PartitionTelling::Next::kSendLater:
        at_work_.push_back(static_cast<uint32_t>(number));
        if (!pause_.pending()) pause_.add(std::exchange(next_pause_, std::min(next_pause_ * 2, kMostPause)));
        return;
      case PartitionTelling::Next::kOver:
        if (--left_ == 0) finish();
    }
  }
  void on_errand_over(Errand&, const base::Status& status) override {
    if (!status) {
      outcome_ = Outcome::kNoAnswer;
      why_ = status.message();
    }
    teller_.on_over(debtor_, outcome_, std::string(why_));  // `this` is destroyed
  }

  void on_pause() {
    for (const uint32_t number : std::exchange(at_work_, {})) ask(number);
  }
  void ask(uint32_t number) {
    value_ = partitions_[number].value();
    op::Op op;
    op.code = op::OpCode::kAdmin;
    op.group = static_cast<uint8_t>(op::AdminVerb::kMember);
    op.value = value_;
    errand_.send(op, number, number);
  }
  void give_up() {
    left_ = 0;
    outcome_ = Outcome::kUnfinished;
    why_ = "it has not finished in time";
    pause_.del();
    errand_.keep_open(false);
  }
  void finish() {
    errand_.keep_open(false);
    for (const PartitionTelling& partition : partitions_) {
      if (partition.belongs_to_others() && outcome_ == Outcome::kTold) {
        outcome_ = Outcome::kOthers;
        why_ = "it belongs to other members than those before";
      }
      if (partition.refusal() == ResultCode::kOk) continue;
      outcome_ = Outcome::kRefused;
      why_ = partition.refusal() == ResultCode::kForbidden ? "the secret gives no right to flush"
                                                           : "it refuses to be told";
    }
  }

  Teller& teller_;
  Debtor& debtor_;
  const std::vector<MemberNews> news_;
  const uint64_t ends_ns_;
  std::vector<PartitionTelling> partitions_;
  std::vector<uint32_t> at_work_;  // to be asked after the pause
  size_t left_ = 0;
  std::chrono::microseconds next_pause_ = kFirstPause;
  Outcome outcome_ = Outcome::kTold;
  std::string why_, value_;
  Event pause_;
  Errand errand_;
};

// --- Teller

Teller::Teller(events::EventLoop& loop, const base::Clock& clock, HealthWatch& watch, ChangeCounters& counters,
               TellerObserver& observer, rpc::ClientSession::Connect connect)
    : loop_(loop),
      clock_(clock),
      watch_(watch),
      counters_(counters),
      observer_(observer),
      connect_(connect),
      marker_(base::random_u64()),
      look_(Event::timer<&Teller::go_on>(loop, *this)) {}

Teller::~Teller() = default;

void Teller::set_options(bool is_on, const rpc::SessionOptions& session, uint64_t patience_ns) {
  session_ = session;
  patience_ns_ = patience_ns;
  session_.op_timeout_ns = std::min(session.op_timeout_ns, session.connect_timeout_ns);
  if (is_on && !std::exchange(is_on_, is_on)) {
    // Changes that nobody was told of have gone by: from now on they belong to these.
    for (const Membership::Entry& entry : last_->members()) owe(entry, nullptr);
    return look_.activate();
  }
  is_on_ = is_on;
  if (is_on_ || debtors_.empty()) return;
  for (const auto& [key, debtor] : debtors_) {
    debtor->debt = Debt();
    debtor->is_waited_for = debtor->is_held_back = false;
  }
  hold_back(*in_force_);
  look_.activate();
}

bool Teller::foresee(const Membership& newest) {
  const bool is_same_pool = std::ranges::any_of(
      newest.members(), [&](const Membership::Entry& entry) { return pool_.contains(identity_of(entry.member)); });
  if (!is_same_pool) return false;
  for (const Membership::Entry& entry : newest.members()) pool_.insert(identity_of(entry.member));
  return true;
}

bool Teller::tell(std::shared_ptr<const Membership> next) {
  const bool is_same_pool = foresee(*next);
  const std::shared_ptr<const Membership> before = std::exchange(last_, std::move(next));
  pool_.clear();
  for (const Membership::Entry& entry : last_->members()) pool_.insert(identity_of(entry.member));
  is_pending_ = true;
  if (!is_on_) return is_waited_for_ = false;
  for (const Membership::Entry& entry : last_->members()) owe(entry, is_same_pool ? before : nullptr);
  for (const Membership::Entry& entry : before->members()) {
    if (is_same_pool && index_of(*last_, entry.member) == kNoMember) owe(entry, before);
  }
  forget_absent();
  patient_until_ns_ = clock_.now_ns() + patience_ns_;
  is_waited_for_ = is_same_pool;
  look_.activate();
  return is_waited_for_;
}

void Teller::owe(const Membership::Entry& member, std::shared_ptr<const Membership> before) {
  std::unique_ptr<Debtor>& debtor = debtors_[identity_of(member.member)];
  if (debtor == nullptr) {
    debtor = std::make_unique<Debtor>();
    debtor->since = ++added_;
  }
  // Its transport may be another one than before: then its figures are, too, and the probe that waits for `done` is of the old
  // ones, and ends.
  if (debtor->stats != member.stats) debtor->done = nullptr;
  debtor->member = member.member;
  debtor->stats = member.stats;
  debtor->is_waited_for = before != nullptr;
  debtor->next_ns = 0;
  debtor->failures = 0;
  debtor->debt.add(std::move(before), last_, ++marker_);
  counters_.owed.set(debtors_.size());
}

// Of members that have left, those that were added last are remembered.
void Teller::forget_absent() {
  std::vector<const Debtor*> absent;
  for (const auto& [key, debtor] : debtors_) {
    const bool is_member = is_in_force(*debtor) || index_of(*last_, debtor->member) != kNoMember;
    if (!is_member && debtor->telling == nullptr && !debtor->is_waited_for) absent.push_back(debtor.get());
  }
  if (absent.size() <= kMostAbsent) return;
  std::ranges::sort(absent, {}, &Debtor::since);
  for (const Debtor* debtor : std::span(absent).first(absent.size() - kMostAbsent))
    debtors_.erase(identity_of(debtor->member));
  counters_.owed.set(debtors_.size());
}

bool Teller::is_in_force(const Debtor& debtor) const {
  return index_of(*in_force_, debtor.member) != kNoMember;
}

void Teller::put_in_force(std::shared_ptr<const Membership> membership) {
  const std::shared_ptr<const Membership> before = std::exchange(in_force_, std::move(membership));
  is_pending_ = false;
  is_waited_for_ = false;
  for (const auto& [key, debtor] : debtors_) debtor->is_held_back = is_in_force(*debtor) && debtor->debt.holds_back();
  hold_back(*before);
  for (const auto& [key, debtor] : debtors_) {
    if (debtor->is_held_back) observer_.on_held_back(debtor->member, debtor->why);
  }
  forget_absent();
  look_.activate();
}

// `before`: the members that the ones in force replace just now, or those in force. Workers go by them until they have applied the
// next ones, so a member that is held back and leaves stays held back; HealthWatch drops it with the next membership.
void Teller::hold_back(const Membership& before) {
  std::vector<const MemberStats*> held;
  for (const Membership::Entry& entry : before.members()) {
    if (entry.stats->health.is_held_back.get() == 0) continue;
    const bool stays =
        std::ranges::any_of(in_force_->members(), [&](const auto& one) { return one.stats == entry.stats; });
    if (!stays) held.push_back(entry.stats.get());
  }
  for (const Membership::Entry& entry : in_force_->members()) {
    const auto at = debtors_.find(identity_of(entry.member));
    const bool is_held = at != debtors_.end() && at->second->is_held_back;
    if (is_held) held.push_back(entry.stats.get());
    entry.stats->health.is_held_back.set(is_held ? 1 : 0);
  }
  watch_.hold_back(std::move(held));
}

void Teller::go_on() {
  const uint64_t now_ns = clock_.now_ns();
  std::erase_if(debtors_,
                [](const auto& each) { return each.second->debt.is_paid() && each.second->telling == nullptr; });
  counters_.owed.set(debtors_.size());
  look_at_waited_for(now_ns);
  try_again(now_ns);
  const bool is_somebody_waited_for =
      std::ranges::any_of(debtors_, [](const auto& each) { return each.second->is_waited_for; });
  if (is_waited_for_ && !is_somebody_waited_for) {
    is_waited_for_ = false;
    observer_.on_told();
  }
  const bool goes_on = std::ranges::any_of(
      debtors_, [&](const auto& each) { return each.second->is_waited_for || is_in_force(*each.second); });
  if (goes_on && !look_.pending()) look_.add(kLookAgain);
}

// Whom the change under way concerns: who does not answer is waited for no longer than a while, who is ejected not at all.
void Teller::look_at_waited_for(uint64_t now_ns) {
  for (const auto& [key, debtor] : debtors_) {
    if (!debtor->is_waited_for || debtor->telling != nullptr) continue;
    const bool has_failed = !debtor->why.empty() && now_ns >= patient_until_ns_;
    if (has_failed || watch_.is_ejected(*debtor->stats)) {
      debtor->is_waited_for = false;
    } else if (errands_ < kMostErrands && now_ns >= debtor->next_ns) {
      start(*debtor);
    }
  }
}

// Who is in use and has not been told. One that is ejected is told when it answers its probe.
void Teller::try_again(uint64_t now_ns) {
  for (const auto& [key, debtor] : debtors_) {
    const bool is_due = debtor->telling == nullptr && now_ns >= debtor->next_ns && errands_ < kMostErrands;
    if (is_due && !debtor->is_waited_for && is_in_force(*debtor) && !watch_.is_ejected(*debtor->stats)) start(*debtor);
  }
}

void Teller::start(Debtor& debtor) {
  ++errands_;
  debtor.why.clear();
  debtor.telling = std::make_unique<Telling>(*this, debtor);
}

void Teller::on_over(Debtor& debtor, Outcome outcome, const std::string& why) {
  --errands_;
  debtor.telling.reset();
  look_.activate();
  if (outcome == Outcome::kNoAnswer) {
    debtor.why = why;
    debtor.next_ns = clock_.now_ns() + (kRetryNs << std::min(debtor.failures++, kMostDoublings));
    if (debtor.done) std::exchange(debtor.done, nullptr)(base::Status::error(why));
    return;
  }
  count(debtor, outcome, why);
  debtor.debt.pay();
  if (!debtor.debt.is_paid()) return start(debtor);  // another change has come meanwhile
  debtor.is_waited_for = false;
  if (std::exchange(debtor.is_held_back, false)) {
    hold_back(*in_force_);
    observer_.on_let_in(debtor.member);
  }
  if (debtor.done) std::exchange(debtor.done, nullptr)(base::Status::ok());
}

void Teller::count(const Debtor& debtor, Outcome outcome, const std::string& why) {
  if (outcome == Outcome::kTold) return counters_.told.add();
  counters_.not_told.add();
  if (!debtor.debt.holds_back()) return;  // nothing was to be removed
  observer_.on_not_told(debtor.member, why);
}

// --- readmission

void Teller::begin(const Membership::Entry& member, Done done) {
  const auto at = debtors_.find(identity_of(member.member));
  if (at == debtors_.end() || at->second->debt.is_paid()) return done(base::Status::ok());
  Debtor& debtor = *at->second;
  debtor.done = std::move(done);
  if (debtor.telling == nullptr) start(debtor);
}

void Teller::cancel(const MemberStats& member) {
  for (const auto& [key, debtor] : debtors_) {
    if (debtor->stats.get() == &member) debtor->done = nullptr;
  }
}

}  // namespace egret::pool
