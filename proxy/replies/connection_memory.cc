#include "proxy/replies/connection_memory.h"

#include "proxy/replies/reply_queue.h"

namespace egret::proxy {

bool LargeValueBudget::take(uint64_t bytes) {
  if (used_ > 0 && used_ + bytes > limit_) return false;
  used_ += bytes;
  return true;
}

void LargeValueBudget::give(uint64_t bytes) {
  used_ -= bytes;
  // Connections that still find no room queue up again.
  std::vector<ReplyQueue*> waiting;
  waiting.swap(waiting_);
  for (ReplyQueue* queue : waiting) queue->on_budget();
}

void LargeValueBudget::wait(ReplyQueue* queue) {
  waiting_.push_back(queue);
}

void LargeValueBudget::stop_waiting(const ReplyQueue* queue) {
  std::erase(waiting_, queue);
}

}  // namespace egret::proxy
