#include "rpc/upload_room.h"

#include <algorithm>

#include "rpc/large/large_set.h"

namespace egret::rpc {

bool UploadRoom::enter(LargeSet* set, uint64_t bytes) {
  const bool is_next = waiting_.empty() || waiting_.front() == set;  // who waits comes first
  const bool fits = open_.empty() || (used_ + bytes <= limit_ && open_.size() < kMaxOpen);
  if (!is_next || !fits || is_closed_) return false;
  if (!waiting_.empty()) waiting_.pop_front();
  open_.push_back({set, bytes});
  used_ += bytes;
  return true;
}

bool UploadRoom::enter_whole(const LargeSet* set) {
  if (whole_ != set && (whole_ != nullptr || is_closed_)) return false;
  whole_ = set;
  return true;
}

bool UploadRoom::announce(const LargeSet* set) {
  if (announced_ != set && (announced_ != nullptr || is_closed_)) return false;
  announced_ = set;
  return true;
}

void UploadRoom::wait(LargeSet* set) {
  if (std::ranges::find(waiting_, set) == waiting_.end()) waiting_.push_back(set);
}

void UploadRoom::leave(const LargeSet* set) {
  std::erase(waiting_, set);
  if (whole_ == set) whole_ = nullptr;
  if (announced_ == set) announced_ = nullptr;
  const auto at = std::ranges::find(open_, set, &Open::set);
  if (at == open_.end()) return;
  used_ -= at->bytes;
  open_.erase(at);
}

bool UploadRoom::make_room(uint64_t now_ns) {
  if (waiting_.empty() || open_.empty() || is_closed_) return false;  // who waits now does so for the session's sake
  const auto slowest = std::ranges::min_element(open_, {}, [](const Open& open) { return open.set->moved_ns(); });
  const uint64_t moved_ns = slowest->set->moved_ns();
  if (moved_ns == LargeSet::kNever || now_ns < moved_ns + kSlowNs) return false;
  slowest->set->lose_room();
  return true;
}

}  // namespace egret::rpc
