#include "proxy/replies/connection_memory.h"

#include <utility>

#include "proxy/replies/reply_queue.h"

namespace egret::proxy {

void LargeValueBudget::set_limit(uint64_t limit) {
  const bool is_more = limit > limit_;
  limit_ = limit;
  if (is_more) wake();
}

bool LargeValueBudget::take(uint64_t bytes) {
  if (used_ > 0 && used_ + bytes > limit_) return false;
  used_ += bytes;
  return true;
}

void LargeValueBudget::give(uint64_t bytes) {
  used_ -= bytes;
  wake();
}

bool LargeValueBudget::resize(uint64_t from, uint64_t to) {
  const uint64_t others = used_ - from;
  if (to > from && others > 0 && others + to > limit_) return false;
  used_ = others + to;
  if (to < from) wake();
  return true;
}

void LargeValueBudget::wait(ReplyQueue* queue) {
  waiting_.push_back(queue);
}

void LargeValueBudget::stop_waiting(const ReplyQueue* queue) {
  std::erase(waiting_, queue);
}

// Those that still find no room queue up again. One that is woken may give what it took at once (its session is lost):
// that starts another round here, not a call within a call, of which there could be as many as connections.
void LargeValueBudget::wake() {
  wake_again_ = true;
  if (std::exchange(is_waking_, true)) return;
  while (std::exchange(wake_again_, false)) {
    for (size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
      ReplyQueue* const queue = waiting_.front();
      waiting_.pop_front();
      queue->on_budget();
    }
  }
  is_waking_ = false;
}

}  // namespace egret::proxy
