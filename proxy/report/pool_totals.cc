#include "proxy/report/pool_totals.h"

#include <algorithm>

namespace egret::proxy {

using op::StatId;

namespace {

// A backend tells its age in whole seconds, and its answer takes a while.
constexpr uint64_t kStartErrorNs = 2'000'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;

uint64_t at(std::span<const uint64_t> rows, StatId id) {
  const auto index = static_cast<size_t>(id);
  return index < rows.size() ? rows[index] : 0;
}

// The rows that count events, indexed by StatId.
std::vector<uint64_t> events_of(std::span<const uint64_t> rows) {
  std::vector<uint64_t> events;
  for (const op::StatInfo& info : op::stat_table()) {
    events.resize(static_cast<size_t>(info.id) + 1);
    if (!op::is_level(info.id)) events.back() = at(rows, info.id);
  }
  return events;
}

bool is_any_less(const std::vector<uint64_t>& now, const std::vector<uint64_t>& before) {
  for (size_t i = 0; i < std::min(now.size(), before.size()); ++i) {
    if (now[i] < before[i]) return true;
  }
  return false;
}

// Both lives of one backend.
void add(std::vector<uint64_t>& sum, const std::vector<uint64_t>& rows) {
  if (sum.size() < rows.size()) sum.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) sum[i] += rows[i];
}

void raise(std::vector<uint64_t>& rows, const std::vector<uint64_t>& to) {
  if (rows.size() < to.size()) rows.resize(to.size());
  for (size_t i = 0; i < to.size(); ++i) rows[i] = std::max(rows[i], to[i]);
}

// Two backends.
void merge(std::vector<uint64_t>& sum, const std::vector<uint64_t>& rows) {
  if (sum.size() < rows.size()) sum.resize(rows.size());
  for (const op::StatInfo& info : op::stat_table()) {
    const auto i = static_cast<size_t>(info.id);
    if (i >= rows.size()) continue;
    sum[i] = info.over_backends == op::StatMerge::kMax ? std::max(sum[i], rows[i]) : sum[i] + rows[i];
  }
}

std::string key_of(const pool::Member& member) {
  return member.name + ' ' + member.address;
}

}  // namespace

uint64_t PoolTotals::Totals::of(StatId id) const {
  return at(store, id);
}

PoolTotals::Totals PoolTotals::take(const pool::FanOut& answers, uint64_t asked_ns, uint64_t now_ns,
                                    const pool::Membership& membership) {
  const std::scoped_lock lock(mutex_);
  for (const pool::FanOut::Answered& answer : answers.each()) take_in(answer, asked_ns, now_ns);
  know(membership);
  Totals totals;
  totals.store = gone_;
  for (const auto& [key, known] : known_) {
    std::vector<uint64_t> all = known.last;
    add(all, known.earlier);
    merge(totals.store, all);
  }
  add_lanes(totals);
  return totals;
}

void PoolTotals::take_in(const pool::FanOut::Answered& answer, uint64_t asked_ns, uint64_t now_ns) {
  Known& known = known_[key_of(answer.member)];
  const std::vector<uint64_t> rows = events_of(answer.stats);
  const uint64_t pid = at(answer.stats, StatId::kPid);
  const uint64_t age_ns = at(answer.stats, StatId::kUptime) * kSecondNs;
  const uint64_t started_ns = now_ns - std::min(now_ns, age_ns);
  const bool is_new_life = pid != known.pid || started_ns > known.started_ns + kStartErrorNs;
  const bool is_less = is_any_less(rows, known.last);
  known.is_member = true;
  if (known.seen_ns != 0 &&
      asked_ns <= known.seen_ns) {  // beside the one that was answered last: the later answer may be the older
    if (!is_new_life) raise(known.last, rows);
    return;
  }
  if (known.seen_ns != 0 && is_less && is_new_life) add(known.earlier, known.last);
  if (known.seen_ns != 0 && is_less && !is_new_life) forget_earlier();
  known.last = rows;
  known.pid = pid;
  known.started_ns = started_ns;
  known.seen_ns = now_ns;
}

// What other members have counted in this life stays: if they were reset, too, their own rows say so.
void PoolTotals::forget_earlier() {
  gone_.clear();
  std::erase_if(known_, [](const auto& entry) { return !entry.second.is_member; });
  for (auto& [key, known] : known_) known.earlier.clear();
}

// Who is a member, and who has left.
void PoolTotals::know(const pool::Membership& membership) {
  for (auto& [key, known] : known_) known.is_member = false;
  for (const pool::Membership::Entry& entry : membership.members()) {
    const auto found = known_.find(key_of(entry.member));
    if (found != known_.end()) found->second.is_member = true;
    lanes_.insert(entry.stats);
  }
  if (known_.size() <= kMostMembers) return;
  std::erase_if(known_, [this](const auto& entry) {
    if (entry.second.is_member) return false;
    std::vector<uint64_t> all = entry.second.last;
    add(all, entry.second.earlier);
    merge(gone_, all);
    return true;
  });
}

void PoolTotals::add_lanes(Totals& totals) {
  // Nobody else holds it: it is no member, and all of its sessions are over.
  std::erase_if(lanes_, [this](const std::shared_ptr<pool::MemberStats>& stats) {
    if (stats.use_count() > 1) return false;
    for (const auto& session : stats->sessions) {
      gone_lanes_ += session->sum();
      gone_deliveries_.add(session->deliveries);
    }
    return true;
  });
  totals.lanes += gone_lanes_;
  totals.deliveries.add(gone_deliveries_);
  for (const auto& stats : lanes_) {
    for (const auto& session : stats->sessions) {
      totals.lanes += session->sum();
      totals.deliveries.add(session->deliveries);
    }
  }
}

void PoolTotals::reset(const pool::Membership& membership) {
  const std::scoped_lock lock(mutex_);
  known_.clear();
  gone_.clear();
  gone_lanes_.mark();
  gone_deliveries_.mark();
  know(membership);
  for (const auto& stats : lanes_) {
    for (const auto& session : stats->sessions) session->mark();
  }
}

}  // namespace egret::proxy
