// The changes of members that backends have not been told of yet, in their order. A backend that cannot be reached while
// the members change is owed the change, and keys go to it again when it has been told: it may still hold values of keys
// that were changed elsewhere.
//
// Pure. Thread: its owner's. Memory: kMostSteps memberships for each member, shared between members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pool/change/telling.h"

namespace egret::pool {

class Debt {
 public:
  static constexpr size_t kMostSteps = 4;  // of more, the member is told to remove everything

  // `before`: null: unknown. `marker`: a number that no membership has; another one in each call.
  void add(std::shared_ptr<const Membership> before, std::shared_ptr<const Membership> next, uint64_t marker);
  // All that was owed when news() was called last is paid.
  void pay();
  bool is_paid() const { return steps_.empty(); }
  // Whether an old value may be read from it: it may have to remove something.
  bool holds_back() const;

  // What the member is to be told now.
  std::vector<MemberNews> news(const Member& member);

 private:
  struct Step {
    std::shared_ptr<const Membership> before, next;
    uint64_t marker = 0;  // not 0: it removes everything, as a member of these first
  };
  std::vector<Step> steps_;
  size_t told_ = 0;  // of them, in the last news()
};

}  // namespace egret::pool
