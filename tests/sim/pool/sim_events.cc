#include "sim_events.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>

#include "base/check.h"
#include "base/random.h"

// The types that event.h leaves to its implementation.
struct event {
  event_base* base = nullptr;
  int fd = -1;
  short flags = 0;
  void (*callback)(int, short, void*) = nullptr;
  void* owner = nullptr;
  bool is_watched = false;              // the descriptor
  bool is_active = false;               // by activate()
  std::optional<uint64_t> due_ns = {};  // by the control clock
  uint64_t period_ns = 0;
  uint64_t number = 0;  // another one for each event
};

struct event_base {
  std::vector<event*> events;  // in the order in which they were made
  uint64_t made = 0;
};

namespace egret::sim {

namespace {

const ControlClock* time_of_loops = nullptr;
Network* network_of_loops = nullptr;
Rng* chance = nullptr;
std::map<const events::EventLoop*, event_base*> bases;

bool is_fd_ready(const event& each) {
  if (!each.is_watched) return false;
  if (each.fd >= Network::kFirstFd) return network_of_loops->is_ready(each.fd);
  pollfd asked{.fd = each.fd, .events = POLLIN, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

bool is_due(const event& each) {
  return each.is_active || (each.due_ns && *each.due_ns <= time_of_loops->quiet_now_ns()) || is_fd_ready(each);
}

// As libevent does: an event that does not persist is removed before its handler is called.
void handle(event& each) {
  each.is_active = false;
  if (each.fd >= Network::kFirstFd && (each.flags & events::kEdge) != 0) network_of_loops->take_ready(each.fd);
  if ((each.flags & events::kPersist) == 0) {
    each.due_ns.reset();
    each.is_watched = false;
  } else if (each.due_ns) {
    each.due_ns = time_of_loops->quiet_now_ns() + each.period_ns;
  }
  each.callback(each.fd, 0, each.owner);  // the event may be gone after it
}

}  // namespace

void bind_events(const ControlClock& clock, Network& network, Rng& rng) {
  time_of_loops = &clock;
  network_of_loops = &network;
  chance = &rng;
}

bool is_ready(const events::EventLoop& loop) {
  return std::ranges::any_of(bases.at(&loop)->events, [](const event* each) { return is_due(*each); });
}

uint64_t next_timer_ns(const events::EventLoop& loop) {
  uint64_t next = UINT64_MAX;
  for (const event* each : bases.at(&loop)->events) {
    if (each->due_ns) next = std::min(next, (*each->due_ns + ControlClock::kPace - 1) / ControlClock::kPace);
  }
  return next;
}

}  // namespace egret::sim

namespace egret::base {

void fill_random(std::span<std::byte> bytes) {
  for (std::byte& each : bytes) each = static_cast<std::byte>(sim::chance->next());
}

uint64_t random_u64() {
  return sim::chance->next();
}

}  // namespace egret::base

namespace egret::events {

const char* library_version() {
  return "simulated";
}

void EventLoop::Deleter::operator()(event_base* base) const {
  std::erase_if(sim::bases, [&](const auto& each) { return each.second == base; });
  delete base;
}

EventLoop::EventLoop() : events_(sizeof(event)), base_(new event_base) {
  sim::bases[this] = base_.get();
}

void EventLoop::run() {
  EGRET_CHECK(false);  // a simulation gives turns
}

void EventLoop::run_once(bool may_wait) {
  EGRET_CHECK(!may_wait);
  std::vector<std::pair<uint64_t, event*>> due;
  for (event* each : base_->events) {
    if (sim::is_due(*each)) due.emplace_back(each->number, each);
  }
  while (!due.empty()) {
    const uint32_t which = sim::chance->below(static_cast<uint32_t>(due.size()));
    const auto [number, each] = due[which];
    due.erase(due.begin() + which);
    const bool exists = std::ranges::any_of(
        base_->events, [&, number = number](const event* other) { return other->number == number; });
    if (exists && sim::is_due(*each)) sim::handle(*each);
  }
}

void EventLoop::stop() {}

void Event::Deleter::operator()(event* e) const {
  std::erase(e->base->events, e);
  delete e;
}

Event::Event(EventLoop& loop, int fd, short flags, Callback callback, void* owner)
    : event_(new event{.base = loop.base_.get(),
                       .fd = fd,
                       .flags = flags,
                       .callback = callback,
                       .owner = owner,
                       .number = ++loop.base_->made}) {
  loop.base_->events.push_back(event_.get());
}

base::Status Event::add() {
  event_->is_watched = true;
  return base::Status::ok();
}

void Event::add(std::chrono::microseconds after) {
  event_->period_ns = static_cast<uint64_t>(after.count()) * 1000;
  event_->due_ns = sim::time_of_loops->quiet_now_ns() + event_->period_ns;
  event_->is_watched = event_->fd >= 0;
}

void Event::del() {
  event_->is_watched = event_->is_active = false;
  event_->due_ns.reset();
}

void Event::activate() {
  event_->is_active = true;
}

bool Event::pending() const {
  return event_ != nullptr && (event_->is_watched || event_->is_active || event_->due_ns);
}

short Event::flags() const {
  return event_->flags;
}

}  // namespace egret::events
