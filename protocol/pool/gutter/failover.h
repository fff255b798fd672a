// The absence of one owner as one process sees it: when ops on its keys may go to the gutter, and what must be purged on
// the owner before it is used again. Pure logic over what others report.
//
//   kServing ─ ejected ─▶ kLeaving ─ no worker sends to it ─▶ kStandingIn ─ a probe is answered ─▶ kOpening
//      ▲                                                          ▲ │ each of the gutter that has been entered takes ops
//      │                                                          │ └─ (tag, cap of exptimes: stand_in.h)
//      │            any step fails, or the member dies again ─────┤
//      │                                                          │      ┌─────── many keys ───────┐
//      │                                                          │      ▼                         │
//      └─ kLast: read, purge ◀─ those are answered ─ kPausing ◀── few ── kCatchingUp: read, purge ─┘ ◀─ workers have sessions
//                                   new ops on its keys wait
//
// The guarantee: a process that has lost an owner serves, when it uses it again, no value of it that is older than one
// which was acknowledged through that process. For
// * it stands in only when no worker uses the owner any more, and enters first: of what an earlier absence has left in
//   the gutter nothing is seen (the gutter's floor);
// * what is changed in the owner's place is remembered by the gutter, from the entering on, and deleted on the owner
//   before it is used. If anything of it may be unknown, the whole owner is flushed;
// * what was under way to the owner when it was lost is over by then: a worker gets a session with it only when every
//   partition has let go of the worker's old one, and the last purge comes after all workers have theirs;
// * what was under way to the gutter is answered before the last reading, or has failed (the fence of kPausing).
// A place in the gutter's log is kept while the owner serves, and purging goes on from there at the next absence: so what
// arrives in the gutter late (the end of an upload) is purged, too.
//
// Thread: its owner's. Nothing here waits, and nothing fails.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pool/health.h"

namespace egret::pool {

// Up to where the changes of an owner have been read on one of the gutter.
struct Places {
  uint64_t epoch = 0;             // of its process
  std::vector<uint64_t> cursors;  // by partition

  bool operator==(const Places&) const = default;
};

class Failover {
 public:
  enum class State : uint8_t { kServing, kLeaving, kStandingIn, kOpening, kCatchingUp, kPausing, kLast };
  enum class Keys : uint8_t { kStay, kMoved };
  // So few keys are purged while ops wait.
  static constexpr size_t kFew = 64;
  // After so many rounds the rest is purged while ops wait, however much it is.
  static constexpr int kMostRounds = 8;
  // More keys are not kept: the owner is flushed.
  static constexpr size_t kMostKeys = 1u << 20;

  explicit Failover(uint64_t tag) : tag_(tag) {}

  State state() const { return state_; }
  uint64_t tag() const { return tag_; }
  // What the snapshot says of the owner.
  Absent absent(const MemberStats* owner) const;

  // --- what happens
  // The gutter's members now. If that is news while the owner is absent, all are entered anew; and if keys have other
  // owners from now on: else a key that comes back to the owner would be read there as it was before another one had it.
  void on_gutter(std::span<const MemberStats* const> members, Keys keys = Keys::kStay);
  void on_ejected();
  // All workers have taken a snapshot with how() == kFails.
  void on_left();
  void on_entered(const MemberStats* member, const Places& places);
  // The owner has answered a probe. False: it cannot return yet, since workers may still be sending to it.
  bool readmit();
  // Each worker has a session with it.
  void on_opened();
  // All workers have taken a snapshot with kWaits, and what they had sent with the tag has been answered.
  void on_fenced();
  // What was read on one of the gutter, from its places on: to the end, as of then. Also while the owner serves: what
  // was changed up to there has been purged on it by somebody.
  void on_read(const MemberStats* member, const Places& places, std::vector<std::string> keys, bool is_complete);
  // It could not be asked.
  void on_not_read(const MemberStats* member);
  // keys(), or everything, have been purged on the owner.
  void on_purged();
  // A step failed, or took too long: the owner stays absent, and what is not purged yet is kept.
  void give_up();

  // --- what is to be done
  // kStandingIn and later: members of the gutter that are to be entered.
  std::vector<const MemberStats*> to_enter() const;
  // kCatchingUp, kLast: members that are still to be read.
  std::vector<const MemberStats*> to_read() const { return unread_; }
  const Places& places(const MemberStats* member) const { return places_.at(member); }
  // Everything has been read: keys() are to be deleted on the owner; or, if is_flush_due(), it is to be flushed.
  bool is_purge_due() const { return is_reading() && unread_.empty(); }
  bool is_flush_due() const { return must_flush_ && state_ == State::kLast; }
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  bool is_reading() const { return state_ == State::kCatchingUp || state_ == State::kLast; }
  bool is_entered(const MemberStats* member) const;
  void begin_round();
  void enter_anew();

  const uint64_t tag_;
  State state_ = State::kServing;
  std::vector<const MemberStats*> gutter_;
  std::vector<const MemberStats*> entered_;      // they take ops
  std::vector<const MemberStats*> used_;         // they have taken ops in this absence
  std::map<const MemberStats*, Places> places_;  // also of earlier absences
  std::vector<const MemberStats*> unread_;       // in this round
  std::vector<std::string> keys_;                // read and not purged yet
  size_t round_keys_ = 0;                        // read in this round
  int rounds_ = 0;
  bool must_flush_ = false;
};

}  // namespace egret::pool
