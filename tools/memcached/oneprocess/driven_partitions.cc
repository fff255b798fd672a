#include "oneprocess/driven_partitions.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/timerfd.h>

namespace egret::oneprocess {

using backend::Partition;
using events::Event;

namespace {
constexpr uint64_t kLongestSleepNs = uint64_t{1} << 62;
constexpr uint64_t kRoundUpNs = 1'000'000;  // so that what was waited for is due on waking
}  // namespace

DrivenPartitions::DrivenPartitions(std::vector<Partition*> partitions, int first, std::latch& without_clients)
    : partitions_(std::move(partitions)),
      first_(first),
      without_clients_(without_clients),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_.is_open()) throw std::system_error(errno, std::system_category(), "timerfd_create");
}

void DrivenPartitions::begin(events::EventLoop& loop) {
  has_begun_ = true;
  for (Partition* const partition : partitions_) {
    partition->begin();
    signals_.push_back(Event::on_fd<&Partition::on_message>(
        loop, partition->message_fd(), events::kRead | events::kPersist | events::kEdge, *partition));
    signals_.push_back(
        Event::on_fd<&Partition::on_signal>(loop, partition->wait_fd(), events::kRead | events::kPersist, *partition));
  }
  due_ = Event::on_fd<&DrivenPartitions::on_timer>(loop, timer_.get(), events::kRead | events::kPersist | events::kEdge,
                                                   *this);
  signals_.push_back(std::move(due_));
  for (Event& signal : signals_) {
    if (const base::Status added = signal.add(); !added)
      throw std::system_error(errno, std::system_category(), "a partition's descriptor");
  }
}

bool DrivenPartitions::poll() {
  bool any = false;
  for (Partition* const partition : partitions_) any |= partition->poll();
  return any;
}

bool DrivenPartitions::prepare_sleep() {
  uint64_t until_ns = UINT64_MAX;
  for (Partition* const partition : partitions_) {
    if (!partition->prepare_sleep()) return false;
    until_ns = std::min(until_ns, partition->sleeps_until_ns());
  }
  if (until_ns < armed_ns_) arm(until_ns);
  return true;
}

void DrivenPartitions::arm(uint64_t until_ns) {
  armed_ns_ = until_ns;
  if (until_ns >= kLongestSleepNs) return;
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t at_ns = until_ns + kRoundUpNs;
  const itimerspec at{
      .it_interval = {},
      .it_value = {.tv_sec = static_cast<time_t>(at_ns / kSecond), .tv_nsec = static_cast<long>(at_ns % kSecond)}};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

bool DrivenPartitions::is_over() const {
  return std::ranges::all_of(partitions_, &Partition::is_stopped);
}

// Other workers, and sessions of other processes, are served until everything stops.
void DrivenPartitions::end() {
  signals_.clear();
  if (!has_begun_) {
    for (Partition* const partition : partitions_) partition->begin();
  }
  without_clients_.count_down();
  while (!is_over()) {
    const bool served = poll();
    take_signals(!served && prepare_sleep());
  }
  for (Partition* const partition : partitions_) partition->finish();
}

// As the worker's loop did: without blocking, too, or the signals of one partition would wait for the rest of another.
void DrivenPartitions::take_signals(bool block) {
  std::vector<pollfd> awaited = {{timer_.get(), POLLIN, 0}};
  for (const Partition* const partition : partitions_) {
    awaited.push_back({partition->message_fd(), POLLIN, 0});
    awaited.push_back({partition->wait_fd(), POLLIN, 0});
  }
  ::poll(awaited.data(), awaited.size(), block ? -1 : 0);
  // Here they are level-triggered: read.
  const auto take = [](const pollfd& each) {
    uint64_t count = 0;
    return each.revents != 0 && ::read(each.fd, &count, sizeof count) > 0;
  };
  if (take(awaited[0])) on_timer();
  for (size_t i = 0; i < partitions_.size(); ++i) {
    if (take(awaited[1 + 2 * i])) partitions_[i]->on_message();
    if (awaited[2 + 2 * i].revents != 0) partitions_[i]->on_signal();
  }
}

}  // namespace egret::oneprocess
