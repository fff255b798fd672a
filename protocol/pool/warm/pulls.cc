#include "pool/warm/pulls.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pool/warm/phase.h"

namespace egret::pool {

using rpc::ClientSession;

bool WarmPhase::is_of_one_pool(const Membership& before, const Membership& now) {
  return std::ranges::any_of(before.members(), [&](const Membership::Entry& one) {
    return std::ranges::any_of(now.members(), [&](const Membership::Entry& other) { return other.stats == one.stats; });
  });
}

// Pulls that are under way end with their sessions, before this.
Pulls::~Pulls() {
  close();
  EGRET_DCHECK(pulls_.empty());
}

void Pulls::keep(std::shared_ptr<const Membership> before) {
  is_open_ = false;
  before_ = before->members().empty() ? nullptr : std::move(before);
  members_before_.clear();
  present_.clear();
  if (before_ == nullptr) return;
  std::map<const MemberStats*, ClientSession*> sessions;
  for (const auto& session : pool_.sessions()) sessions[pool_.member_of(*session).stats.get()] = session.get();
  std::set<const MemberStats*> owners;
  for (const Membership::Entry& entry : pool_.membership().members()) owners.insert(entry.stats.get());
  std::vector<ClientSession*> asked;
  for (const Membership::Entry& entry : before_->members()) {
    const auto at = sessions.find(entry.stats.get());
    members_before_.emplace_back();
    if (at == sessions.end()) continue;
    // It was ejected and owns no key any more: others may have stood in for it, and what they changed is not purged on it. (The
    // pool takes the next health after this call.)
    if (!owners.contains(entry.stats.get()) && pool_.health().is_ejected(*entry.stats)) continue;
    members_before_.back().session = std::make_unique<rpc::SessionAnchor>(*at->second);
    asked.push_back(at->second);
  }
  for (const auto& session : pool_.serving()) present_[session.get()] = session->lanes().generation();
  fence_.start(asked);
}

void Pulls::close() {
  is_open_ = false;
  before_ = nullptr;
  members_before_.clear();
  present_.clear();
  std::vector<Pull*> waiting;
  for (auto& [to, queue] : queues_) {
    waiting.insert(waiting.end(), queue.waiting.begin(), queue.waiting.end());
    queue.under_way += queue.waiting.size();  // on_over() takes it back
    queue.waiting.clear();
  }
  for (Pull* pull : waiting) {
    counters_.skipped.add();
    pull->give_up();
  }
}

// The member that owned the key before, if that was another one and it can be asked.
Pulls::Before* Pulls::source_of(std::string_view key, const Route& to) {
  Before& source = members_before_[before_->owner_of(key)];
  if (source.session == nullptr) return nullptr;
  const ClientSession& session = **source.session;
  if (&session == to.session || !session.is_open() || pool_.is_joining(session) || is_absent(session)) return nullptr;
  return source.rests_until_ns > clock_.now_ns() ? nullptr : &source;
}

// What stands in for it may have newer values.
bool Pulls::is_absent(const ClientSession& before) const {
  if (pool_.aside_of(0) == nullptr) return false;
  const auto serving = pool_.serving();
  const auto at = std::ranges::find(serving, &before, &std::unique_ptr<ClientSession>::get);
  return at != serving.end() && pool_.is_absent(static_cast<size_t>(at - serving.begin()));
}

bool Pulls::may_fill(const Route& to) const {
  const auto at = present_.find(to.session);
  return at != present_.end() && at->second == to.session->lanes().generation() &&
         (to.session->grant().features & wire::kWarm) != 0;
}

bool Pulls::pull(std::string_view key, const Route& to, PullWaiter* waiter, bool patient) {
  if (!is_open_ || to.session == nullptr || to.tag != 0 || !to.session->is_open()) return false;
  if (const auto same = pulls_.find(key); same != pulls_.end() && &same->second->to() == to.session) {
    same->second->add(waiter);
    return true;
  }
  Before* const source = source_of(key, to);
  if (source == nullptr || pulls_.contains(key)) return false;
  Queue& queue = queues_[to.session];
  if (!may_fill(to) || (queue.waiting.size() >= kMostWaiting && !patient)) {
    counters_.skipped.add();
    return false;
  }
  Pull& made = *pulls_.emplace(key, std::make_unique<Pull>(*this, key, **source->session, to)).first->second;
  made.add(waiter);
  if (queue.under_way >= kMostAtOnce) {
    queue.waiting.push_back(&made);
  } else {
    ++queue.under_way;
    made.start();
  }
  return true;
}

void Pulls::stop_waiting(PullWaiter* waiter) {
  for (const auto& [key, pull] : pulls_) pull->remove(waiter);
}

void Pulls::rest(const ClientSession& from) {
  for (Before& before : members_before_) {
    if (before.is_with(from)) before.rests_until_ns = clock_.now_ns() + kRestNs;
  }
}

bool Pulls::is_resting(const ClientSession& from) const {
  return std::ranges::any_of(members_before_, [&](const Before& before) {
    return before.is_with(from) && before.rests_until_ns > clock_.now_ns();
  });
}

// Destroys the pull.
void Pulls::on_over(Pull& pull) {
  const ClientSession* const to = &pull.to();
  --queues_.at(to).under_way;
  pulls_.erase(pulls_.find(pull.key()));
  start_waiting(to);
}

// A pull that cannot be made ends at once and calls on_over() in turn: the loop below goes on, so that calls do not nest.
void Pulls::start_waiting(const ClientSession* to) {
  if (std::exchange(is_starting_, true)) return;
  while (true) {
    const auto at = queues_.find(to);
    if (at == queues_.end()) break;
    Queue& queue = at->second;
    if (queue.under_way == 0 && queue.waiting.empty()) {
      queues_.erase(at);
      break;
    }
    if (queue.waiting.empty() || queue.under_way >= kMostAtOnce) break;
    Pull* const next = queue.waiting.front();
    queue.waiting.pop_front();
    ++queue.under_way;
    if (is_resting(next->from())) {
      counters_.skipped.add();
      next->give_up();
    } else {
      next->start();
    }
  }
  is_starting_ = false;
}

}  // namespace egret::pool
