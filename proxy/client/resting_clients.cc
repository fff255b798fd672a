#include "proxy/client/resting_clients.h"

#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include <sys/epoll.h>

namespace egret::proxy {

using events::Event;

namespace {
constexpr size_t kMostAtOnce = 64;  // the rest follows in the loop's next round
}  // namespace

RestingClients::RestingClients(events::EventLoop& loop, std::function<void(ConnectionRecord&)> on_ready)
    : on_ready_(std::move(on_ready)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) throw std::system_error(errno, std::system_category(), "epoll_create1");
  readable_ = Event::on_fd<&RestingClients::on_readable>(loop, epoll_.get(), events::kRead | events::kPersist, *this);
  if (!readable_.add()) throw std::system_error(errno, std::system_category(), "the clients at rest");
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

void RestingClients::on_readable() {
  std::array<epoll_event, kMostAtOnce> events{};
  const int found = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (const epoll_event& event : std::span(events).first(found > 0 ? static_cast<size_t>(found) : 0)) {
    on_ready_(*static_cast<ConnectionRecord*>(event.data.ptr));
  }
}

}  // namespace egret::proxy
