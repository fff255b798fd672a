#include "proxy/client/resting_clients.h"

#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace egret::proxy {

using events::Event;

namespace {
constexpr size_t kMostAtOnce = 64;  // the rest follows in the loop's next round
}  // namespace

RestingClients::RestingClients(events::EventLoop& loop, std::function<void(ConnectionRecord&)> on_ready,
                               std::function<void()> on_time)
    : on_ready_(std::move(on_ready)),
      on_time_(std::move(on_time)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  epoll_event of_timer{.events = EPOLLIN, .data = {.ptr = nullptr}};
  readable_ = Event::on_fd<&RestingClients::on_readable>(loop, epoll_.get(), events::kRead | events::kPersist, *this);
  const bool is_open = epoll_.is_open() && timer_.is_open() &&
                       ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &of_timer) == 0 && readable_.add();
  if (!is_open) throw std::system_error(errno, std::system_category(), "the clients at rest");
}

bool RestingClients::begin(ConnectionRecord& record) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &record}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, record.fd, &event) != 0) return false;
  record.is_resting = true;
  ++count_;
  return true;
}

base::UniqueFd RestingClients::end(ConnectionRecord& record) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, record.fd, nullptr);
  record.is_resting = false;
  --count_;
  return base::UniqueFd(record.fd);
}

void RestingClients::call_after(uint64_t ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const itimerspec once{
      .it_interval = {},
      .it_value = {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)}};
  is_call_pending_ = ::timerfd_settime(timer_.get(), 0, &once, nullptr) == 0;
}

void RestingClients::on_readable() {
  std::array<epoll_event, kMostAtOnce> events{};
  const int found = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool is_time = false;
  for (const epoll_event& event : std::span(events).first(found > 0 ? static_cast<size_t>(found) : 0)) {
    if (event.data.ptr != nullptr) {
      on_ready_(*static_cast<ConnectionRecord*>(event.data.ptr));
    } else {
      uint64_t times = 0;
      is_time = ::read(timer_.get(), &times, sizeof times) > 0;
    }
  }
  if (!is_time) return;
  is_call_pending_ = false;
  on_time_();
}

}  // namespace egret::proxy
