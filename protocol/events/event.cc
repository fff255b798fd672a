#include "events/event.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <new>
#include <system_error>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/check.h"

namespace egret::events {

static_assert(kRead == EV_READ && kWrite == EV_WRITE && kPersist == EV_PERSIST && kEdge == EV_ET);

const char* library_version() {
  return event_get_version();
}

// --- EventLoop

void EventLoop::Deleter::operator()(event_base* base) const {
  event_base_free(base);
}

// Of the system's ways to wait only epoll will do: without edges, a descriptor that nobody reads would be ready for
// ever. libevent would silently take another one if epoll_create1 failed.
EventLoop::EventLoop() : events_(sizeof(event)) {
  const std::unique_ptr<event_config, decltype(&event_config_free)> config(event_config_new(), &event_config_free);
  errno = 0;
  if (config != nullptr && event_config_require_features(config.get(), EV_FEATURE_ET) == 0) {
    base_.reset(event_base_new_with_config(config.get()));
  }
  if (base_ == nullptr) throw std::system_error(errno != 0 ? errno : ENOMEM, std::system_category(), "an event loop");
}

void EventLoop::run() {
  event_base_dispatch(base_.get());
}

void EventLoop::run_once(bool may_wait) {
  event_base_loop(base_.get(), EVLOOP_ONCE | (may_wait ? 0 : EVLOOP_NONBLOCK));
}

void EventLoop::stop() {
  event_base_loopbreak(base_.get());
}

int EventLoop::found() const {
  return event_base_get_num_events(base_.get(), EVENT_BASE_COUNT_ACTIVE);
}

// --- Event

void Event::Deleter::operator()(event* e) const {
  event_del(e);
  event_debug_unassign(e);
  base::Slabs::give(e);
}

Event::Event(EventLoop& loop, int fd, short flags, Callback callback, void* owner)
    : event_(new (loop.events_.take()) event{}) {
  static_assert(kSignal == EV_SIGNAL);
  EGRET_CHECK(event_assign(event_.get(), loop.base_.get(), fd, flags, callback, owner) == 0);
}

namespace {

std::array<std::atomic<bool>, NSIG> noted;  // signals that came while no event waited for them

// When a signal's event is removed, libevent restores the handler that was there before. That is this one, since the default
// handler of SIGTERM would end a process that is ending in order.
void note_signal(int signal) {
  noted[static_cast<size_t>(signal)].store(true, std::memory_order_relaxed);
}

}  // namespace

base::Status Event::add() {
  const bool is_signal = (flags() & kSignal) != 0;
  const auto number = static_cast<size_t>(event_get_fd(event_.get()));
  if (is_signal && !pending()) {
    noted[number] = false;
    std::signal(static_cast<int>(number), &note_signal);
  }
  if (event_add(event_.get(), nullptr) != 0) return base::Status::system_error("cannot wait for a descriptor", errno);
  if (is_signal && noted[number].exchange(false)) activate();  // it came just before
  return base::Status::ok();
}

void Event::add(std::chrono::microseconds after) {
  constexpr int64_t kMicroseconds = 1'000'000;
  const timeval time{static_cast<time_t>(after.count() / kMicroseconds),
                     static_cast<suseconds_t>(after.count() % kMicroseconds)};
  EGRET_CHECK(event_add(event_.get(), &time) == 0);
}

void Event::del() {
  EGRET_CHECK(event_del(event_.get()) == 0);
}

void Event::activate() {
  event_active(event_.get(), EV_TIMEOUT, 1);
}

bool Event::pending() const {
  return event_ != nullptr && event_pending(event_.get(), EV_TIMEOUT | EV_READ | EV_WRITE | EV_SIGNAL, nullptr) != 0;
}

short Event::flags() const {
  return event_get_events(event_.get());
}

}  // namespace egret::events
