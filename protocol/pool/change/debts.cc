#include "pool/change/debts.h"

#include <algorithm>
#include <utility>

namespace egret::pool {

void Debt::add(std::shared_ptr<const Membership> before, std::shared_ptr<const Membership> next, uint64_t marker) {
  if (steps_.size() == kMostSteps) {
    steps_.clear();
    told_ = 0;  // what is being told does not pay for this
    steps_.push_back({nullptr, std::move(next), marker});
    return;
  }
  steps_.push_back({std::move(before), std::move(next)});
}

void Debt::pay() {
  steps_.erase(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(told_));
  told_ = 0;
}

bool Debt::holds_back() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.before != nullptr || step.marker != 0; });
}

std::vector<MemberNews> Debt::news(const Member& member) {
  std::vector<MemberNews> all;
  for (const Step& step : steps_) {
    if (step.marker == 0) {
      all.push_back(news_for(member, step.before.get(), *step.next));
      continue;
    }
    // Whatever it belongs to, it joins members that there are not, and then the present ones.
    const MemberNews last = news_for(member, nullptr, *step.next);
    all.push_back({.from = last.to, .to = step.marker, .before = {}});
    all.push_back({.from = step.marker, .to = last.to, .before = {}});
  }
  told_ = steps_.size();
  return all;
}

}  // namespace egret::pool
