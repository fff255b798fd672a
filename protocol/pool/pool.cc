#include "pool/pool.h"

#include <algorithm>
#include <utility>

#include "rpc/session_ref.h"

namespace egret::pool {

using rpc::ClientSession;
using rpc::SessionAnchor;
using rpc::SessionRef;

Pool::Known Pool::known() const {
  Known known;
  for (size_t i = 0; i < seats_.size(); ++i) known[seats_[i].entry.stats.get()] = i;
  return known;
}

std::vector<ClientSession*> Pool::prepare(const Membership& next) {
  const Known known = this->known();
  std::vector<ClientSession*> fresh;
  std::vector<Seat> joining;
  for (const Membership::Entry& entry : next.all()) {
    if (const auto at = known.find(entry.stats.get()); at != known.end()) {
      stay(seats_[at->second]);
      continue;
    }
    sessions_.push_back(make_(entry));
    joining.push_back({entry, State::kJoining});
    fresh.push_back(sessions_.back().get());
  }
  seats_.insert(seats_.end(), joining.begin(), joining.end());
  return fresh;
}

// One that was to leave, or was joining for members that came later than those in force.
void Pool::stay(Seat& seat) {
  if (seat.state != State::kLeaving) return;
  seat.state = State::kJoining;
  seat.has_old_work = true;
  --leaving_;
}

bool Pool::is_ready_for(const Membership& next) const {
  for (size_t i = 0; i < seats_.size(); ++i) look_for_old_work(i);
  const Known known = this->known();
  return std::ranges::all_of(next.all(), [&](const Membership::Entry& entry) {
    const auto it = known.find(entry.stats.get());
    if (it != known.end() && seats_[it->second].has_old_work) return false;
    if (health_->is_ejected(*entry.stats)) return true;
    return it != known.end() && sessions_[it->second]->is_open();
  });
}

// Whether a member that had left, and joins again, may still execute what was sent to it before: if that came after it has
// removed everything, it would serve an old value later. Once there was nothing, what comes is new: of workers that have
// changed to the next members already, and reach it by this one's session (relay/).
void Pool::look_for_old_work(size_t seat) const {
  seats_[seat].has_old_work &= sessions_[seat]->is_open() && has_work(*sessions_[seat]);
}

std::vector<ClientSession*> Pool::apply(std::shared_ptr<const Membership> membership, uint64_t now_ns,
                                        uint64_t leave_ns) {
  std::vector<ClientSession*> fresh = prepare(*membership);
  const Known known = this->known();
  Sessions sessions;
  std::vector<Seat> seats;
  for (const Membership::Entry& entry : membership->all()) {
    const size_t seat = known.at(entry.stats.get());
    look_for_old_work(seat);
    if (seats_[seat].has_old_work) {  // it was waited for long enough
      sessions_[seat]->close(ClientSession::State::kClosed);
      sessions_[seat]->start();
    }
    sessions.push_back(std::move(sessions_[seat]));
    seats.push_back({entry});
  }
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i] == nullptr) continue;
    if (seats_[i].state != State::kLeaving) seats_[i].leaves_ns = now_ns + leave_ns;
    seats_[i].state = State::kLeaving;
    seats_[i].has_old_work = false;
    sessions.push_back(std::move(sessions_[i]));
    seats.push_back(std::move(seats_[i]));
  }
  leaving_ = sessions.size() - membership->all().size();
  sessions_ = std::move(sessions);
  seats_ = std::move(seats);
  membership_ = std::move(membership);
  choose_routes();
  return fresh;
}

bool Pool::take(std::shared_ptr<const Health> health) {
  if (health->membership() > membership_->version()) return false;
  health_ = std::move(health);
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (seats_[i].state == State::kLeaving) continue;
    const Absent* const absent = health_->find(*seats_[i].entry.stats);
    const bool is_to_close = absent != nullptr && !absent->opens;
    const bool is_closed = sessions_[i]->state() == ClientSession::State::kClosed;
    if (is_to_close == is_closed) continue;
    if (is_to_close) {
      sessions_[i]->close(ClientSession::State::kClosed);
    } else {
      sessions_[i]->start();
    }
  }
  choose_routes();
  returns_.announce();
  return true;
}

// From membership, sessions and health.
void Pool::choose_routes() {
  const size_t members = membership_->members().size();
  direct_.clear();
  asides_.clear();
  for (size_t i = 0; i < members; ++i) {
    const Absent* const absent = health_->find(*seats_[i].entry.stats);
    direct_.push_back(absent == nullptr ? sessions_[i].get() : nullptr);
    if (absent == nullptr || absent->how == Absence::kFails) continue;
    asides_.resize(members);
    Aside& aside = asides_[i];
    aside.tag = absent->tag;
    aside.waits = absent->how == Absence::kWaits;
    for (size_t at = members; at < membership_->all().size(); ++at) {
      const bool is_entered = std::ranges::find(absent->entered, seats_[at].entry.stats.get()) != absent->entered.end();
      aside.stand_ins.push_back(is_entered ? sessions_[at].get() : nullptr);
    }
  }
}

// Of an absent owner.
Route Pool::elsewhere(size_t owner, std::string_view key) const {
  if (asides_.empty()) return {};
  const Aside& aside = asides_[owner];
  if (aside.waits) return {.waits = true};
  if (aside.stand_ins.empty()) return {};
  ClientSession* const session = aside.stand_ins[membership_->gutter_of(key)];
  if (session == nullptr || !session->is_open()) return {};
  const uint64_t hash = session->lanes().hash(key);
  if (is_silent(*session, hash)) return {};
  return {.session = session, .hash = hash, .tag = aside.tag};
}

size_t Pool::index_of(const ClientSession& session) const {
  const auto at = std::ranges::find(sessions_, &session, &std::unique_ptr<ClientSession>::get);
  EGRET_CHECK(at != sessions_.end());
  return static_cast<size_t>(at - sessions_.begin());
}

ClientSession* Pool::session_with(const MemberStats& member) const {
  for (size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].entry.stats.get() == &member) return sessions_[i].get();
  }
  return nullptr;
}

const Membership::Entry& Pool::member_of(const ClientSession& session) const {
  return seats_[index_of(session)].entry;
}

bool Pool::is_leaving(const ClientSession& session) const {
  return seats_[index_of(session)].state == State::kLeaving;
}

bool Pool::is_joining(const ClientSession& session) const {
  for (size_t i = membership_->all().size(); i < sessions_.size(); ++i) {
    if (sessions_[i].get() == &session) return seats_[i].state == State::kJoining;
  }
  return false;
}

bool Pool::has_work(ClientSession& session) {
  return session.lanes().outstanding() > 0 || session.lanes().has_open() || !session.credit().empty() ||
         SessionRef::is_held(session);
}

std::vector<const ClientSession*> Pool::let_leave(uint64_t now_ns) {
  for (size_t i = membership_->all().size(); i < sessions_.size();) {
    ClientSession& session = *sessions_[i];
    const bool is_needed = has_work(session) || SessionAnchor::is_anchored(session);
    const bool stays = session.is_open() && is_needed && now_ns < seats_[i].leaves_ns;
    if (seats_[i].state == State::kJoining || stays) {
      ++i;
      continue;
    }
    session.close();
    closed_.push_back(std::move(sessions_[i]));
    --leaving_;
    sessions_.erase(sessions_.begin() + static_cast<ptrdiff_t>(i));
    seats_.erase(seats_.begin() + static_cast<ptrdiff_t>(i));
  }
  // Whoever waited, or waits in vain, is told.
  for (const auto& session : closed_) {
    session->credit().announce();
    session->credit().hand_out();
  }
  std::vector<const ClientSession*> gone;
  std::erase_if(closed_, [&](const auto& session) {
    const bool is_used = SessionRef::is_held(*session) || SessionAnchor::is_anchored(*session);
    const bool is_over = !is_used && session->credit().empty();
    if (is_over) gone.push_back(session.get());
    return is_over;
  });
  return gone;
}

}  // namespace egret::pool
