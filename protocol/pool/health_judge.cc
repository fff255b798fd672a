#include "pool/health_judge.h"

#include <algorithm>
#include <map>

namespace egret::pool {

const char* to_string(EjectReason reason) {
  switch (reason) {
    case EjectReason::kUnreachable:
      return "no worker has a session with it";
    case EjectReason::kTimeouts:
      return "it does not answer in time";
    case EjectReason::kNone:
      break;
  }
  return "of nothing";
}

const char* word_of(EjectReason reason) {
  switch (reason) {
    case EjectReason::kUnreachable:
      return "unreachable";
    case EjectReason::kTimeouts:
      return "timeouts";
    case EjectReason::kNone:
      break;
  }
  return "none";
}

MemberSigns signs_of(const MemberStats& member) {
  MemberSigns signs{.member = &member};
  for (const auto& session : member.sessions) {
    // In the order opposite to the session's: a failure that is seen here is not of a session that is seen open.
    signs.failures += session->signs.failures.get();
    signs.open += static_cast<uint32_t>(session->is_open.get());
    signs.timeouts = std::max(signs.timeouts, session->signs.timeouts.get());
  }
  return signs;
}

void HealthJudge::set_options(const HealthOptions& options, uint64_t now_ns) {
  options_ = options;
  for (Record& record : members_) {
    record.pause_ns = std::min(record.pause_ns, options.probe_most_ns);
    if (record.flaps > 0) continue;  // its pause is not the options'
    record.next_probe_ns = std::min(record.next_probe_ns, now_ns + jittered(options.probe_most_ns));
  }
}

// Members that stay keep their records.
void HealthJudge::take_members(std::span<const MemberSigns> signs) {
  if (std::ranges::equal(signs, members_, {}, &MemberSigns::member, &Record::member)) return;
  std::map<const MemberStats*, Record> known;
  for (const Record& record : members_) known[record.member] = record;
  members_.clear();
  for (const MemberSigns& each : signs) {
    const auto it = known.find(each.member);
    members_.push_back(it != known.end() ? it->second : Record{.member = each.member});
  }
}

std::vector<HealthJudge::Verdict> HealthJudge::judge(std::span<const MemberSigns> signs, uint64_t now_ns) {
  take_members(signs);
  for (size_t i = 0; i < members_.size(); ++i) members_[i].is_spare = signs[i].is_spare;
  std::vector<Verdict> verdicts = let_in(signs, now_ns);
  size_t out = owners_out();
  for (size_t i = 0; i < members_.size(); ++i) {
    Record& record = members_[i];
    if (record.state != State::kServing) continue;
    const EjectReason why = reason_to_eject(record, signs[i]);
    const bool is_news = why != EjectReason::kNone && !record.is_withheld;
    record.is_withheld = why != EjectReason::kNone;
    if (why == EjectReason::kNone) continue;
    if (record.is_spare ? options_.eject_share > 0 : out < most_ejected()) {
      verdicts.push_back(eject(record, why, now_ns));
      out += record.is_spare ? 0 : 1;
    } else if (is_news && most_ejected() > 0) {
      verdicts.push_back({.kind = Verdict::Kind::kWithheld, .member = record.member, .why = why});
    }
  }
  return verdicts;
}

size_t HealthJudge::owners_out() const {
  const auto is_out = [](const Record& record) { return record.state != State::kServing && !record.is_spare; };
  return static_cast<size_t>(std::ranges::count_if(members_, is_out));
}

// As many as the share has become too small for: those that were ejected last. Their return is no flap.
std::vector<HealthJudge::Verdict> HealthJudge::let_in(std::span<const MemberSigns> signs, uint64_t now_ns) {
  std::vector<Verdict> verdicts;
  for (size_t out = owners_out(); out > most_ejected(); --out) {
    Record* last = nullptr;
    for (size_t i = 0; i < members_.size(); ++i) {
      Record& record = members_[i];
      const bool may_be = record.state != State::kServing && !record.is_spare && signs[i].may_be_let_in;
      if (may_be && (last == nullptr || record.since_ns >= last->since_ns)) last = &record;
    }
    if (last == nullptr) break;
    verdicts.push_back({.kind = Verdict::Kind::kLetIn,
                        .member = last->member,
                        .why = last->why,
                        .lasted_ns = now_ns - last->since_ns});
    last->state = State::kServing;
    last->is_withheld = true;  // it is told of by this verdict
    last->since_ns = 0;
  }
  return verdicts;
}

// A member that hangs may have lost its last session by the time it is judged: that it did not answer is the reason.
EjectReason HealthJudge::reason_to_eject(Record& record, const MemberSigns& signs) const {
  if (signs.open > 0) record.seen_failures = signs.failures;
  if (signs.timeouts >= options_.eject_after) return EjectReason::kTimeouts;
  return signs.open == 0 && signs.failures > record.seen_failures ? EjectReason::kUnreachable : EjectReason::kNone;
}

HealthJudge::Verdict HealthJudge::eject(Record& record, EjectReason why, uint64_t now_ns) {
  const uint64_t flap_ns = flap_pause(record, why, now_ns);
  record.state = State::kEjected;
  record.why = why;
  record.is_withheld = false;
  record.since_ns = now_ns;
  record.pause_ns = std::min(options_.probe_first_ns, options_.probe_most_ns);
  record.next_probe_ns = now_ns + jittered(std::max(record.pause_ns, flap_ns));
  return {.kind = Verdict::Kind::kEjected, .member = record.member, .why = why};
}

// How long its first probe waits because it flaps. Counts this ejection.
uint64_t HealthJudge::flap_pause(Record& record, EjectReason why, uint64_t now_ns) {
  if (record.since_ns == 0) return 0;  // it has never returned
  const uint64_t served_ns = now_ns - record.since_ns;
  record.flaps -= std::min(record.flaps, served_ns / kCalmNs);
  if (why != EjectReason::kTimeouts) return 0;
  if (served_ns < kCalmNs) ++record.flaps;
  if (record.flaps == 0) return 0;
  constexpr uint64_t kMostDoublings = 6;  // beyond kMostFlapNs
  return std::min(kFlapNs << std::min(record.flaps - 1, kMostDoublings), kMostFlapNs);
}

std::vector<const MemberStats*> HealthJudge::due_probes(uint64_t now_ns, size_t most) {
  std::vector<const MemberStats*> due;
  for (Record& record : members_) {
    if (due.size() == most) break;
    if (record.state != State::kEjected || record.next_probe_ns > now_ns) continue;
    record.state = State::kProbing;
    due.push_back(record.member);
  }
  return due;
}

std::vector<HealthJudge::Verdict> HealthJudge::on_probe(const MemberStats* member, bool has_answered,
                                                        const MemberSigns& signs, uint64_t now_ns) {
  Record* const record = find(member);
  if (record == nullptr || record->state != State::kProbing) return {};
  if (!has_answered) {
    record->state = State::kEjected;
    record->pause_ns = std::min(record->pause_ns + record->pause_ns / 2, options_.probe_most_ns);
    record->next_probe_ns = now_ns + jittered(record->pause_ns);
    return {};
  }
  const Verdict returned{
      .kind = Verdict::Kind::kReturned, .member = member, .why = record->why, .lasted_ns = now_ns - record->since_ns};
  record->state = State::kServing;
  record->since_ns = now_ns;
  record->seen_failures = signs.failures;
  return {returned};
}

// With a gutter at least one owner may be ejected, even the only one: the gutter serves its keys, and without the ejection
// they would fail.
size_t HealthJudge::most_ejected() const {
  const auto owners = static_cast<size_t>(std::ranges::count(members_, false, &Record::is_spare));
  const bool has_spares = owners < members_.size();
  const size_t least = has_spares && owners > 0 && options_.eject_share > 0 ? 1 : 0;
  return std::max(least, owners * options_.eject_share / 100);
}

uint64_t HealthJudge::next_probe_ns() const {
  uint64_t next_ns = kNever;
  for (const Record& record : members_) {
    if (record.state == State::kEjected) next_ns = std::min(next_ns, record.next_probe_ns);
  }
  return next_ns;
}

std::vector<const MemberStats*> HealthJudge::ejected() const {
  std::vector<const MemberStats*> out;
  for (const Record& record : members_) {
    if (record.state != State::kServing) out.push_back(record.member);
  }
  return out;
}

// A fifth more or less.
uint64_t HealthJudge::jittered(uint64_t ns) {
  return chance_.between(ns - ns / 5, ns - ns / 5 + 2 * (ns / 5));
}

HealthJudge::Record* HealthJudge::find(const MemberStats* member) {
  const auto at = std::ranges::find(members_, member, &Record::member);
  return at != members_.end() ? &*at : nullptr;
}

}  // namespace egret::pool
