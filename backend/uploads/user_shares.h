// What the users of one partition hold of its room for uploads and of that for pins, and how much they may hold.
//
//   a lane comes ─ attach() ─▶ User ─ is_within()? ─▶ Charge: holds bytes for as long as it lives ─ a lane goes ─ detach() ─▶
//
// Owned by the executor. Thread: the partition's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace egret::backend {

class UserShares {
 public:
  struct User {
    uint32_t lanes = 0;
    uint64_t uploads = 0;  // bytes, and so are these
    uint64_t pins = 0;
  };

  // `percent`: of a room, what one user may hold while other users have lanes, too.
  explicit UserShares(uint32_t percent) : percent_(percent) {}
  void set_percent(uint32_t percent) { percent_ = percent; }

  // A lane of this user (rpc::LaneBinding::user). It stays where it is.
  User& attach(uint32_t number) {
    if (number >= users_.size()) users_.resize(number + 1);
    if (users_[number] == nullptr) users_[number] = std::make_unique<User>();
    if (users_[number]->lanes++ == 0) ++attached_;
    return *users_[number];
  }
  void detach(User& user) {
    if (--user.lanes == 0) --attached_;
  }

  // Whether one that holds so many bytes of a room may have `more`. A user that is alone may hold all of it; beside others
  // its share, or else one value, however large.
  bool is_within(uint64_t held, uint64_t more, uint64_t room) const {
    return attached_ <= 1 || held == 0 || held + more <= room / 100 * percent_;
  }
  // Of all users but `asking`, the one whose uploads hold most bytes. Null: no other user has an upload.
  User* largest_but(const User& asking) const {
    User* largest = nullptr;
    for (const auto& user : users_) {
      if (user == nullptr || user.get() == &asking || user->uploads == 0) continue;
      if (largest == nullptr || user->uploads > largest->uploads) largest = user.get();
    }
    return largest;
  }

 private:
  uint32_t percent_;
  uint32_t attached_ = 0;                     // users that have lanes
  std::vector<std::unique_ptr<User>> users_;  // by number
};

// What a pin or an upload takes of its user's share, for as long as it lives.
class Charge {
 public:
  Charge() = default;
  // `held`: User::uploads or User::pins.
  Charge(uint64_t& held, uint64_t bytes) : held_(&held), bytes_(bytes) { held += bytes; }
  Charge(Charge&& other) noexcept : held_(std::exchange(other.held_, nullptr)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this != &other) {
      release();
      held_ = std::exchange(other.held_, nullptr);
      bytes_ = other.bytes_;
    }
    return *this;
  }
  ~Charge() { release(); }
  void release() {
    if (held_ != nullptr) *held_ -= bytes_;
    held_ = nullptr;
  }

 private:
  uint64_t* held_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace egret::backend
