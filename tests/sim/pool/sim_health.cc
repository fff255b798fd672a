#include "sim_health.h"

#include <algorithm>
#include <utility>

#include "pool_world.h"

namespace egret::sim {

using pool::HealthJudge;
using pool::Membership;
using pool::MemberStats;

// Every partition must answer a ping; then what others did in its place is purged.
class SimHealth::Probe final : private SimErrandOwner {
 public:
  Probe(SimHealth& health, const Membership::Entry& member)
      : health_(health),
        member_(member.stats.get()),
        errand_(health.world_, member.member.address + "@" + health.proxy_, *this) {}
  ~Probe() {
    if (is_readmitting_) health_.gutter_.cancel(*member_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  SimErrand& errand() { return errand_; }
  bool is_over() const { return is_over_; }

 private:
  void on_errand_open(SimErrand& errand, uint32_t partitions) override {
    for (uint32_t partition = 0; partition < partitions; ++partition) errand.send({}, partition);
  }
  void on_errand_result(SimErrand&, uint64_t, const op::Result&) override {}
  void on_errand_over(SimErrand&, bool is_ok) override {
    if (!is_ok) return finish(false);
    is_readmitting_ = true;
    health_.gutter_.begin(*member_, [this](bool is_purged) { finish(is_purged); });
  }
  void finish(bool is_ok) {
    is_readmitting_ = false;
    is_over_ = true;
    health_.on_probe(member_, is_ok);
  }

  SimHealth& health_;
  const MemberStats* const member_;
  bool is_readmitting_ = false, is_over_ = false;
  SimErrand errand_;
};

SimHealth::SimHealth(PoolWorld& world, const std::string& proxy)
    : world_(world), proxy_(proxy), judge_(world.scenario.health, world.seed), gutter_(world, proxy, *this) {}

SimHealth::~SimHealth() = default;

void SimHealth::stop() {
  probes_.clear();
  gutter_.stop();
}

void SimHealth::take_membership() {
  membership_ = std::exchange(next_, nullptr);
  std::erase_if(probes_, [&](const auto& probe) { return entry_of(probe.first) == nullptr; });
  gutter_.set_membership(membership_);
  look();
  publish();  // who has left is not ejected any more
}

void SimHealth::on_taken(uint64_t version) {
  taken_ = version;
  gutter_.ring();
}

void SimHealth::on_fenced(uint64_t version) {
  fenced_ = version;
  gutter_.ring();
}

void SimHealth::step() {
  if (next_ != nullptr) take_membership();
  if (std::exchange(is_rung_, false)) look();
  std::vector<Probe*> probes;
  for (const auto& [_, probe] : probes_) probes.push_back(probe.get());
  for (Probe* each : probes) each->errand().step();
  gutter_.step();
  const size_t over = std::erase_if(probes_, [](const auto& each) { return each.second->is_over(); });
  if (over > 0 || judge_.next_probe_ns() <= world_.clock.manual.now_ns()) look();
}

bool SimHealth::is_asleep() const {
  if (is_rung_ || next_ != nullptr || judge_.next_probe_ns() <= world_.clock.manual.now_ns()) return false;
  if (!gutter_.is_asleep()) return false;
  return std::ranges::all_of(probes_, [](const auto& each) { return each.second->errand().is_asleep(); });
}

uint64_t SimHealth::next_tick_ns() const {
  uint64_t next = std::min(judge_.next_probe_ns(), gutter_.next_tick_ns());
  for (const auto& [_, probe] : probes_) {
    if (!probe->errand().is_over()) next = std::min(next, probe->errand().next_tick_ns());
  }
  return next;
}

void SimHealth::look() {
  std::vector<pool::MemberSigns> signs;
  for (const Membership::Entry& entry : membership_->all()) signs.push_back(signs_of(*entry.stats));
  for (size_t at = membership_->members().size(); at < signs.size(); ++at) signs[at].is_spare = true;
  tell(judge_.judge(signs, world_.clock.manual.now_ns()));
  start_probes();
}

void SimHealth::start_probes() {
  for (const MemberStats* member : judge_.due_probes(world_.clock.manual.now_ns(), world_.scenario.backends)) {
    probes_[member] = std::make_unique<Probe>(*this, *entry_of(member));
    ++world_.counters.probes;
  }
}

void SimHealth::on_probe(const MemberStats* member, bool has_answered) {
  world_.counters.failed_probes += !has_answered;
  tell(judge_.on_probe(member, has_answered, signs_of(*member), world_.clock.manual.now_ns()));
}

void SimHealth::tell(const std::vector<HealthJudge::Verdict>& verdicts) {
  for (const HealthJudge::Verdict& verdict : verdicts) {
    world_.counters.ejected_unreachable +=
        verdict.kind == HealthJudge::Verdict::Kind::kEjected && verdict.why == pool::EjectReason::kUnreachable;
    world_.counters.ejected_slow +=
        verdict.kind == HealthJudge::Verdict::Kind::kEjected && verdict.why == pool::EjectReason::kTimeouts;
    world_.counters.returned += verdict.kind == HealthJudge::Verdict::Kind::kReturned;
    world_.counters.withheld += verdict.kind == HealthJudge::Verdict::Kind::kWithheld;
    if (verdict.kind == HealthJudge::Verdict::Kind::kEjected) check_share(verdict.member);
    if (!world_.is_tracing()) continue;
    static constexpr const char* kWhat[] = {"ejects", "lets in", "would eject"};
    world_.trace(proxy_ + " " + kWhat[static_cast<size_t>(verdict.kind)] + " " + entry_of(verdict.member)->member.name +
                 ": " + word_of(verdict.why));
  }
  if (!verdicts.empty()) publish();
}

// The gutter's are all ejected that must be.
void SimHealth::check_share(const MemberStats* member) {
  const auto members = membership_->members();
  const auto is_owner = [&](const MemberStats* one) {
    return std::ranges::any_of(members, [&](const Membership::Entry& entry) { return entry.stats.get() == one; });
  };
  const std::vector<const MemberStats*> out = judge_.ejected();
  const auto owners = static_cast<size_t>(std::ranges::count_if(out, is_owner));
  if (is_owner(member) && owners * 100 > members.size() * world_.scenario.health.eject_share) {
    world_.history.fail("more members are ejected than allowed");
  }
}

void SimHealth::publish() {
  std::vector<pool::Absent> absent;
  for (const MemberStats* member : judge_.ejected()) absent.push_back(gutter_.absent(*member));
  pool::Health next(published_->version() + 1, std::move(absent));
  if (next.is_same(*published_)) return;
  published_ = std::make_shared<const pool::Health>(std::move(next));
}

const Membership::Entry* SimHealth::entry_of(const MemberStats* member) const {
  const auto all = membership_->all();
  const auto at = std::ranges::find(all, member, [](const Membership::Entry& entry) { return entry.stats.get(); });
  return at != all.end() ? &*at : nullptr;
}

std::string SimHealth::describe() const {
  std::string text;
  for (const Membership::Entry& entry : membership_->all()) {
    if (published_->is_ejected(*entry.stats)) text += " without " + entry.member.name;
  }
  return text;
}

}  // namespace egret::sim
