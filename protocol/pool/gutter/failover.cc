#include "pool/gutter/failover.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace egret::pool {

Absent Failover::absent(const MemberStats* owner) const {
  Absent absent{.member = owner, .tag = tag_};
  switch (state_) {
    case State::kServing:
    case State::kLeaving:
      break;
    case State::kPausing:
    case State::kLast:
      absent.how = Absence::kWaits;
      absent.opens = true;
      break;
    case State::kOpening:
    case State::kCatchingUp:
      absent.opens = true;
      [[fallthrough]];
    case State::kStandingIn:
      absent.how = Absence::kStoodIn;
      absent.entered = entered_;
      break;
  }
  return absent;
}

bool Failover::is_entered(const MemberStats* member) const {
  return std::ranges::find(entered_, member) != entered_.end();
}

void Failover::on_gutter(std::span<const MemberStats* const> members, Keys keys) {
  if (keys == Keys::kMoved) enter_anew();
  if (std::ranges::equal(members, gutter_)) return;
  gutter_.assign(members.begin(), members.end());
  const auto has_left = [&](const MemberStats* member) { return std::ranges::find(gutter_, member) == gutter_.end(); };
  // What was changed on one that has left cannot be asked for any more.
  if (state_ != State::kServing) must_flush_ |= std::ranges::any_of(used_, has_left);
  std::erase_if(places_, [&](const auto& place) { return has_left(place.first); });
  std::erase_if(used_, has_left);
  enter_anew();  // keys have another place in the gutter, where they may have been before
}

void Failover::enter_anew() {
  if (state_ == State::kServing) return;
  state_ = State::kLeaving;
  entered_.clear();
  unread_.clear();
}

void Failover::on_ejected() {
  if (state_ != State::kServing) return;
  state_ = State::kLeaving;
  entered_.clear();
  used_.clear();
}

void Failover::on_left() {
  if (state_ == State::kLeaving) state_ = State::kStandingIn;
}

std::vector<const MemberStats*> Failover::to_enter() const {
  std::vector<const MemberStats*> members;
  if (state_ != State::kStandingIn) return members;
  std::ranges::copy_if(gutter_, std::back_inserter(members), [this](const auto* each) { return !is_entered(each); });
  return members;
}

// A place that is known from before stays, as long as it is the same process.
void Failover::on_entered(const MemberStats* member, const Places& places) {
  if (state_ != State::kStandingIn || is_entered(member) || std::ranges::find(gutter_, member) == gutter_.end()) return;
  Places& known = places_[member];
  const bool is_same = known.epoch == places.epoch && known.cursors.size() == places.cursors.size();
  if (!is_same) known = places;
  if (std::ranges::find(used_, member) == used_.end()) {
    used_.push_back(member);
  } else if (!is_same) {
    must_flush_ = true;  // what was changed on it before is not known any more
  }
  entered_.push_back(member);
}

bool Failover::readmit() {
  if (state_ != State::kStandingIn) return false;
  state_ = State::kOpening;
  rounds_ = 0;
  return true;
}

void Failover::on_opened() {
  if (state_ != State::kOpening) return;
  state_ = State::kCatchingUp;
  begin_round();
}

void Failover::begin_round() {
  unread_.clear();
  round_keys_ = 0;
  for (const MemberStats* member : gutter_) {
    if (places_.contains(member)) unread_.push_back(member);
  }
}

void Failover::on_read(const MemberStats* member, const Places& places, std::vector<std::string> keys,
                       bool is_complete) {
  if (state_ == State::kServing && places_.contains(member)) places_[member] = places;
  if (!is_reading() || std::erase(unread_, member) == 0) return;
  places_[member] = places;
  must_flush_ |= !is_complete;
  round_keys_ += keys.size();
  std::ranges::move(keys, std::back_inserter(keys_));
  if (keys_.size() > kMostKeys) must_flush_ = true;
  if (must_flush_) keys_.clear();
}

// One that took no op in this absence is no loss: its place is kept.
void Failover::on_not_read(const MemberStats* member) {
  if (!is_reading() || std::erase(unread_, member) == 0) return;
  if (std::ranges::find(used_, member) == used_.end()) return;
  must_flush_ = true;
  keys_.clear();
}

void Failover::on_purged() {
  if (!is_purge_due()) return;
  keys_.clear();
  if (state_ == State::kLast) {
    state_ = State::kServing;
    must_flush_ = false;
    entered_.clear();
    used_.clear();
    return;
  }
  ++rounds_;
  if (must_flush_ || round_keys_ <= kFew || rounds_ >= kMostRounds) {
    state_ = State::kPausing;
  } else {
    begin_round();
  }
}

void Failover::on_fenced() {
  if (state_ != State::kPausing) return;
  state_ = State::kLast;
  begin_round();
}

void Failover::give_up() {
  if (state_ == State::kServing || state_ == State::kLeaving) return;
  state_ = State::kStandingIn;
  unread_.clear();
}

}  // namespace egret::pool
