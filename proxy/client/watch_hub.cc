#include "proxy/client/watch_hub.h"

#include <algorithm>

#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

namespace egret::proxy {

namespace {
constexpr size_t kRoomForSkipped = 128;
}

Watcher::Watcher(uint16_t streams) : streams_(streams), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Watcher::offer(std::string_view line) {
  const std::lock_guard lock(mutex_);
  const bool was_empty = waiting_.size() == taken_;
  if (waiting_.size() - taken_ + line.size() + kRoomForSkipped > kBuffer) {
    ++skipped_;
    return;
  }
  if (skipped_ > 0) {
    waiting_.append("skipped=").append(std::to_string(skipped_)).append("\n");
    skipped_ = 0;
  }
  waiting_.append(line);
  if (!was_empty) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Watcher::skip(uint64_t lines) {
  const std::lock_guard lock(mutex_);
  skipped_ += lines;
}

bool Watcher::take(std::string& to, size_t most) {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &count, sizeof count);
  const std::string_view left = std::string_view(waiting_).substr(taken_);
  const size_t end = left.size() <= most ? left.size() : left.find('\n', most) + 1;
  to.append(left.substr(0, end));
  taken_ += end;
  if (taken_ == waiting_.size()) {
    waiting_.clear();
    taken_ = 0;
  } else if (taken_ > kBuffer / 2) {
    waiting_.erase(0, taken_);
    taken_ = 0;
  }
  return taken_ < waiting_.size();
}

// As in memcached: microseconds without leading zeros.
std::string WatchHub::line_of(std::string_view text) {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  std::string line = "ts=" + std::to_string(now.tv_sec) + "." + std::to_string(now.tv_usec);
  line.append(" gid=").append(std::to_string(number_.fetch_add(1, std::memory_order_relaxed) + 1));
  return line.append(" ").append(text).append("\n");
}

void WatchHub::log(memcache::WatchStream stream, std::string_view text) {
  const std::string line = line_of(text);
  const std::lock_guard lock(mutex_);
  for (Watcher* const watcher : watchers_) {
    if ((watcher->streams() & stream) != 0) watcher->offer(line);
  }
}

bool WatchHub::add(Watcher& watcher) {
  const std::lock_guard lock(mutex_);
  if (watchers_.size() >= kMostWatchers) return false;
  watchers_.push_back(&watcher);
  sum_up();
  return true;
}

void WatchHub::remove(Watcher& watcher) {
  const std::lock_guard lock(mutex_);
  std::erase(watchers_, &watcher);
  sum_up();
}

void WatchHub::sum_up() {
  uint32_t all = 0;
  for (const Watcher* watcher : watchers_) all |= watcher->streams();
  wanted_.store(all, std::memory_order_relaxed);
}

}  // namespace egret::proxy
