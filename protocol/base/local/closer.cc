#include "base/local/closer.h"

#include <system_error>
#include <thread>
#include <utility>

#include "base/local/helper_threads.h"

namespace egret::base {

namespace {
constexpr unsigned kMostThreads = 4;
}

Closer& Closer::of_process() {
  // Never destroyed: its threads may be in the middle of a close when the process ends.
  static Closer* const closer = new Closer;
  return *closer;
}

void Closer::close(UniqueFd descriptor) {
  if (!descriptor.is_open()) return;
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(descriptor));
  if (!may_start_helper_threads()) {
    kept_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (waiting_.size() > idle_ && threads_ < kMostThreads) start_thread();
  filled_.notify_one();
}

// If the system has no thread for us, the descriptor waits for those that there are, or for the next call.
void Closer::start_thread() {
  try {
    std::thread([this] { run(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
  }
}

void Closer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    filled_.wait(lock, [this] { return !waiting_.empty(); });
    --idle_;
    UniqueFd descriptor = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    descriptor.reset();
    lock.lock();
  }
}

}  // namespace egret::base
