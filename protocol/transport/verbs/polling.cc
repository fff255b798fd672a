#include "transport/verbs/polling.h"

#include <cerrno>

#include <sys/epoll.h>

namespace egret::transport::verbs {

using base::Expected;
using base::Status;

namespace {

Status watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? Status::ok() : Status::system_error("epoll_ctl", errno);
}

}  // namespace

Expected<Polling> Polling::of(PollGroup* group) {
  auto told = device::Notifier::make();
  if (!told) return told.status();
  if (group != nullptr) {
    return Polling(static_cast<QueueGroup*>(group)->queues(), std::move(told.value()), false);
  }
  auto queues = SharedQueues::make();
  if (!queues) return queues.status();
  Polling made(std::move(queues.value()), std::move(told.value()), true);
  made.both_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!made.both_.is_open()) return Status::system_error("epoll_create1", errno);
  if (Status watched = watch(made.both_.get(), made.told_->fd()); !watched) return watched;
  if (Status watched = watch(made.both_.get(), made.queues_->fd()); !watched) return watched;
  return made;
}

void Polling::look() {
  told_->reset();
  if (!is_own_ || is_data_) return;
  queues_->ready();
  queues_->arm();
  queues_->poll();
}

Status Polling::also_watch(int fd) const {
  return is_own_ ? watch(both_.get(), fd) : Status::error("the endpoint has no descriptor of its own");
}

// From here on the queues' descriptor belongs to data_fd() alone.
void Polling::begin_data() {
  is_data_ = true;
  if (is_own_) ::epoll_ctl(both_.get(), EPOLL_CTL_DEL, queues_->fd(), nullptr);
}

}  // namespace egret::transport::verbs
