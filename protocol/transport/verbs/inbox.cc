#include "transport/verbs/inbox.h"

namespace egret::transport::verbs {

bool Inbox::put(const Received& received) {
  if (is_closed_.load(std::memory_order_acquire)) return false;
  if (!is_data_.load(std::memory_order_acquire)) {
    const std::scoped_lock held(mutex_);
    if (!is_data_.load(std::memory_order_relaxed)) {
      early_.push_back(received);
      if (early_.size() == 1) told_->notify();
      return false;
    }
  }
  waiting_.push_back(received);
  return listener_ != nullptr && !std::exchange(is_listed_, true);
}

void Inbox::tell() {
  is_listed_ = false;
  if (listener_ != nullptr) listener_->on_ready(token_);
}

std::vector<Received> Inbox::take_early() {
  const std::scoped_lock held(mutex_);
  return std::exchange(early_, {});
}

std::vector<Received> Inbox::begin_data(size_t most) {
  const std::scoped_lock held(mutex_);
  waiting_.reserve(most);
  is_data_.store(true, std::memory_order_release);
  return std::exchange(early_, {});
}

void Inbox::set_listener(ReadyListener* listener, uint64_t token) {
  listener_ = listener;
  token_ = token;
  if (listener_ != nullptr && next_ < waiting_.size()) listener_->on_ready(token_);
}

}  // namespace egret::transport::verbs
