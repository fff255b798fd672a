// An event loop of libevent, and the events in it: a descriptor that becomes ready, a timer, a signal.
//
//   tick_ = Event::timer<&Worker::on_tick>(loop_, *this, kPersist);
//   tick_.add(10ms)  ─▶  loop_.run()  ─▶  worker.on_tick()
//
// The handler is a template argument: a member function of the owner, or a function or captureless lambda that takes
// the owner. Memory is allocated when an event is made, not when it is added, removed or handled.
//
// An event is owned by its holder. Destroying or replacing it removes it from the loop; its handler is not called any
// more. The handler's owner must not move while the event exists; the Event itself may be moved. The loop outlives its
// events, and a descriptor stays open until its event is destroyed.
//
// Thread: all functions of a loop and of its events are called by the thread that runs the loop, or before it runs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "base/slabs.h"
#include "base/status.h"

struct event;
struct event_base;

namespace egret::events {

// The version of the libevent that is linked.
const char* library_version();

// Flags of a descriptor's event, combined by `|`. Without kPersist an event is removed before its handler is called.
inline constexpr short kRead = 0x02;
inline constexpr short kWrite = 0x04;
inline constexpr short kPersist = 0x10;
inline constexpr short kEdge = 0x20;  // edge-triggered

class EventLoop {
 public:
  // Throws std::system_error if the system has no descriptors or memory for it.
  EventLoop();

  // Handles events until stop() is called.
  void run();
  // Handles the events that are ready. If there is none and `may_wait`, waits for the first one.
  void run_once(bool may_wait);
  // From within a handler: run() returns after it.
  void stop();
  // Within a callback: events that have been found with this one, and whose callbacks are still to be called.
  int found() const;

 private:
  friend class Event;
  struct Deleter {
    void operator()(event_base* base) const;
  };
  base::Slabs events_;  // outlives base_
  std::unique_ptr<event_base, Deleter> base_;
};

class Event {
 public:
  Event() = default;  // no event: only is_set(), pending(), assignment and destruction are allowed

  // An event of a descriptor. It is not in the loop until add() is called.
  template <auto kHandler, class Owner>
  static Event on_fd(EventLoop& loop, int fd, short flags, Owner& owner) {
    return Event(loop, fd, flags, &call<kHandler, Owner>, &owner);
  }
  // `flags`: kPersist, or 0 for a timer that goes off once.
  template <auto kHandler, class Owner>
  static Event timer(EventLoop& loop, Owner& owner, short flags = 0) {
    return Event(loop, -1, flags, &call<kHandler, Owner>, &owner);
  }
  // When the event is gone, the signal does nothing: a process that ends in order is not cut short by a second SIGTERM.
  template <auto kHandler, class Owner>
  static Event on_signal(EventLoop& loop, int signal, Owner& owner) {
    return Event(loop, signal, kSignal | kPersist, &call<kHandler, Owner>, &owner);
  }

  bool is_set() const { return event_ != nullptr; }
  void reset() { event_.reset(); }
  // Waits for the descriptor or the signal, without a time limit. Does nothing if it is waiting already. Returns an error
  // if the system cannot watch one more descriptor (the user's limit of epoll watches, memory); the event is then not in
  // the loop.
  base::Status add();
  // Of a timer: calls the handler after this time (with kPersist, periodically). Replaces an earlier time.
  void add(std::chrono::microseconds after);
  void del();
  // Makes the loop call the handler in its next round, as if the event had happened.
  void activate();
  bool pending() const;
  // The flags that on_fd() was given.
  short flags() const;

 private:
  using Callback = void (*)(int, short, void*);
  struct Deleter {
    void operator()(event* e) const;
  };
  static constexpr short kSignal = 0x08;

  Event(EventLoop& loop, int fd, short flags, Callback callback, void* owner);

  template <auto kHandler, class Owner>
  static void call(int, short, void* owner) {
    std::invoke(kHandler, *static_cast<Owner*>(owner));
  }

  std::unique_ptr<event, Deleter> event_;
};

}  // namespace egret::events
