#include "client/preload/thread_engine.h"

#include <algorithm>

#include <sys/eventfd.h>

#include "client/preload/real.h"

namespace egret::preload {

ThreadEngine::Sleeper::Sleeper(ThreadEngine& of, std::function<bool()> has_come)
    : of_(of), has_come_(std::move(has_come)) {
  const std::lock_guard held(of_.sleepers_mutex_);
  of_.sleepers_.push_back(this);
  of_.is_asleep_.store(true, std::memory_order_relaxed);
}

// Anywhere: a thread that is cancelled leaves like this.
ThreadEngine::Sleeper::~Sleeper() {
  const std::lock_guard held(of_.sleepers_mutex_);
  std::erase(of_.sleepers_, this);
  of_.is_asleep_.store(!of_.sleepers_.empty(), std::memory_order_relaxed);
  if (!of_.sleepers_.empty()) of_.sleepers_.front()->ring();
}

void ThreadEngine::Sleeper::arm(pollfd& events, pollfd& bell) {
  if (of_.is_shared_ && bell_.get() < 0) {
    bell_.make([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  }
  const std::lock_guard held(of_.sleepers_mutex_);
  if (std::exchange(is_rung_, false) && bell_.get() >= 0) {
    uint64_t rung = 0;
    [[maybe_unused]] const ssize_t got = real().read(bell_.get(), &rung, sizeof rung);
  }
  events = {is_first() ? of_.engine_->fd() : -1, POLLIN, 0};
  bell = {bell_.get(), POLLIN, 0};
}

void ThreadEngine::Sleeper::look(const pollfd& events) {
  if ((events.revents & POLLIN) != 0) of_.engine_->on_ready();
}

// A thread may wait for several sockets at once.
bool ThreadEngine::Sleeper::is_first() const {
  return of_.sleepers_.front()->thread_ == thread_;
}

void ThreadEngine::Sleeper::ring() {
  if (bell_.get() < 0 || is_rung_) return;
  is_rung_ = true;
  const uint64_t once = 1;
  [[maybe_unused]] const ssize_t written = real().write(bell_.get(), &once, sizeof once);
}

void ThreadEngine::look_for_sleepers() {
  const std::lock_guard held(sleepers_mutex_);
  for (Sleeper* const each : sleepers_) {
    if (each->thread_ != client::this_thread() && each->has_come_()) each->ring();
  }
}

}  // namespace egret::preload
