#include "pool/health_watch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/random.h"

namespace egret::pool {

using events::Event;

// --- HealthState

HealthState::HealthState() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_.is_open()) throw std::system_error(errno, std::system_category(), "eventfd");
}

void HealthState::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

void HealthState::take_bell() {
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof rings);
}

void HealthState::set(Health health) {
  const uint64_t version = health.version();
  now_.set(std::move(health));
  version_.store(version, std::memory_order_release);
}

// --- a probe: every partition must answer a ping, and each step of readmission must succeed

class HealthWatch::Probe final : public ErrandOwner {
 public:
  Probe(HealthWatch& watch, const Membership::Entry& member)
      : watch_(watch),
        member_(member.stats.get()),
        errand_(std::in_place, watch.loop_, watch.clock_, Errand::options(watch.session_, member.member.address), *this,
                watch.connect_) {
    errand_->start();
  }
  ~Probe() {
    if (step_ != nullptr) step_->cancel(*member_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

 private:
  void on_errand_open(Errand& errand, uint32_t partitions) override {
    for (uint32_t partition = 0; partition < partitions; ++partition) errand.send({}, partition);
  }
  void on_errand_result(Errand&, uint64_t, const op::Result&) override {}
  void on_errand_over(Errand&, const base::Status& status) override { go_on(status); }
  // The probe was answered, or a step is done, or not. `this` may be destroyed.
  void go_on(const base::Status& status) {
    step_ = nullptr;
    if (!status) return watch_.on_probe(member_, base::Status(status));
    errand_.reset();  // `status` may have been its
    if (next_step_ == watch_.steps_.size()) return watch_.on_probe(member_, base::Status::ok());
    step_ = watch_.steps_[next_step_++];
    step_->begin(*watch_.entry_of(member_), [this](const base::Status& done) { go_on(done); });
  }

  HealthWatch& watch_;
  const MemberStats* const member_;
  std::optional<Errand> errand_;
  Readmission* step_ = nullptr;  // under way
  size_t next_step_ = 0;
};

// --- HealthWatch

HealthWatch::HealthWatch(events::EventLoop& loop, const base::Clock& clock, HealthState& state,
                         HealthObserver& observer, rpc::ClientSession::Connect connect)
    : loop_(loop),
      clock_(clock),
      state_(state),
      observer_(observer),
      connect_(connect),
      judge_({}, base::random_u64()),
      bell_(Event::on_fd<&HealthWatch::on_bell>(loop, state.bell_fd(), events::kRead | events::kPersist, *this)),
      look_(Event::timer<&HealthWatch::look>(loop, *this)) {
  if (!bell_.add()) throw std::system_error(errno, std::system_category(), "signs of members");
}

HealthWatch::~HealthWatch() = default;

void HealthWatch::set_options(const HealthOptions& options, const rpc::SessionOptions& session) {
  session_ = session;
  session_.op_timeout_ns = std::min(session.op_timeout_ns, session.connect_timeout_ns);
  judge_.set_options(options, clock_.now_ns());
  look();
}

void HealthWatch::set_membership(std::shared_ptr<const Membership> membership) {
  const std::shared_ptr<const Membership> before = std::exchange(membership_, std::move(membership));
  std::erase_if(probes_, [&](const auto& probe) { return entry_of(probe.first) == nullptr; });
  for (const Membership::Entry& entry : before->all()) {  // one that comes back begins anew
    if (entry_of(entry.stats.get()) == nullptr) entry.stats->health.is_ejected.set(0);
  }
  look();
  std::erase_if(held_back_, [this](const MemberStats* member) { return entry_of(member) == nullptr; });
  publish();  // who has left is not ejected any more, nor held back
}

void HealthWatch::on_bell() {
  state_.take_bell();
  look();
  if (absences_ != nullptr) absences_->look();
}

void HealthWatch::look() {
  const uint64_t now_ns = clock_.now_ns();
  const std::shared_ptr<const Health> published = state_.get();
  std::vector<MemberSigns> signs;
  signs.reserve(membership_->all().size());
  for (const Membership::Entry& entry : membership_->all()) {
    const Absent* const absent = published->find(*entry.stats);
    signs.push_back(signs_of(*entry.stats));
    signs.back().may_be_let_in = absent == nullptr || absent->tag == 0;
  }
  for (size_t at = membership_->members().size(); at < signs.size(); ++at) signs[at].is_spare = true;
  tell(judge_.judge(signs, now_ns), now_ns);
  start_probes(now_ns);
}

void HealthWatch::start_probes(uint64_t now_ns) {
  for (const MemberStats* member : judge_.due_probes(now_ns, kMostProbes - probes_.size())) {
    const Membership::Entry* const entry = entry_of(member);
    entry->stats->health.probes.add();
    probes_[member] = std::make_unique<Probe>(*this, *entry);
  }
  const uint64_t next_ns = judge_.next_probe_ns();
  if (next_ns == HealthJudge::kNever || probes_.size() == kMostProbes) return;
  look_.add(std::chrono::microseconds(next_ns > now_ns ? (next_ns - now_ns) / 1000 + 1 : 1));
}

void HealthWatch::on_probe(const MemberStats* member, const base::Status& status) {
  const uint64_t now_ns = clock_.now_ns();
  const Membership::Entry& entry = *entry_of(member);
  probes_.erase(member);
  if (!status) {
    entry.stats->health.failed_probes.add();
    observer_.on_failed_probe(entry, status.message());
  }
  tell(judge_.on_probe(member, status.is_ok(), signs_of(*member), now_ns), now_ns);
  look();
}

void HealthWatch::tell(const std::vector<HealthJudge::Verdict>& verdicts, uint64_t now_ns) {
  if (verdicts.empty()) return;
  for (const HealthJudge::Verdict& verdict : verdicts) {
    const Membership::Entry& entry = *entry_of(verdict.member);
    MemberStats::Health& health = entry.stats->health;
    if (verdict.kind != HealthJudge::Verdict::Kind::kWithheld) {
      const bool is_ejected = verdict.kind == HealthJudge::Verdict::Kind::kEjected;
      health.is_ejected.set(is_ejected ? 1 : 0);
      health.why.set(static_cast<uint64_t>(verdict.why));
      health.changed_ns.set(now_ns);
      if (is_ejected) health.ejections.add();
    }
    if (verdict.kind == HealthJudge::Verdict::Kind::kLetIn) probes_.erase(verdict.member);
    observer_.on_verdict(entry, verdict);
  }
  publish();
}

void HealthWatch::hold_back(std::vector<const MemberStats*> members) {
  held_back_ = std::move(members);
  publish();
}

bool HealthWatch::is_ejected(const MemberStats& member) const {
  const std::vector<const MemberStats*> ejected = judge_.ejected();
  return std::ranges::find(ejected, &member) != ejected.end();
}

void HealthWatch::publish() {
  const std::shared_ptr<const Health> before = state_.get();
  std::vector<Absent> out;
  for (const MemberStats* member : judge_.ejected()) {
    out.push_back(absences_ != nullptr ? absences_->absent(*member) : Absent{.member = member});
  }
  for (const MemberStats* member : held_back_) {
    if (std::ranges::find(out, member, &Absent::member) == out.end()) out.push_back({.member = member});
  }
  Health next(before->version() + 1, std::move(out), membership_->version());
  if (next.is_same(*before)) return;
  state_.set(std::move(next));
  observer_.on_health();
}

const Membership::Entry* HealthWatch::entry_of(const MemberStats* member) const {
  const auto members = membership_->all();
  const auto at = std::ranges::find(members, member, [](const Membership::Entry& entry) { return entry.stats.get(); });
  return at != members.end() ? &*at : nullptr;
}

}  // namespace egret::pool
