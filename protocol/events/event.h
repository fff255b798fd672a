// An event loop of libevent, and the events in it: a descriptor that becomes ready, a timer, a signal.
//
//   tick_ = Event::timer<&Worker::on_tick>(loop_, *this, kPersist);
//   tick_.add(10ms)  ─▶  loop_.run()  ─▶  worker.on_tick()
//
// The handler is a template argument: a member function of the owner, or a function or captureless lambda that takes
// the owner. Memory is allocated when an event is made, not when it is added, removed or handled.
//
// An event belongs to its holder: destroyed or replaced, it is removed from the loop and its handler is not called any
// more. The owner must stay at its address for as long as the event exists; the Event itself may be moved. The loop
// outlives its events; the descriptor stays open until its event is destroyed.
//
// Thread: all functions of a loop and of its events are called by the thread that runs the loop, or before it runs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

struct event;
struct event_base;

namespace egret::events {

// Of libevent, as it is linked.
const char* library_version();

// What a descriptor's event waits for, and how; combined by `|`. Without kPersist an event is removed before its
// handler is called.
inline constexpr short kRead = 0x02;
inline constexpr short kWrite = 0x04;
inline constexpr short kPersist = 0x10;
inline constexpr short kEdge = 0x20;  // only when the descriptor becomes ready anew, not for as long as it is

class EventLoop {
 public:
  EventLoop();

  // Handles events until stop() is called.
  void run();
  // Handles what is ready. If `may_wait`, and nothing is ready, waits for the first event.
  void run_once(bool may_wait);
  // From within a handler: run() returns after it.
  void stop();

 private:
  friend class Event;
  struct Deleter {
    void operator()(event_base* base) const;
  };
  std::unique_ptr<event_base, Deleter> base_;
};

class Event {
 public:
  Event() = default;  // no event: only is_set(), pending(), assignment and destruction are allowed

  // Of a descriptor. Made events are not in the loop: add() puts them there.
  template <auto kHandler, class Owner>
  static Event on_fd(EventLoop& loop, int fd, short flags, Owner& owner) {
    return Event(loop, fd, flags, &call<kHandler, Owner>, &owner);
  }
  // `flags`: kPersist, or 0 for a timer that goes off once.
  template <auto kHandler, class Owner>
  static Event timer(EventLoop& loop, Owner& owner, short flags = 0) {
    return Event(loop, -1, flags, &call<kHandler, Owner>, &owner);
  }
  template <auto kHandler, class Owner>
  static Event on_signal(EventLoop& loop, int signal, Owner& owner) {
    return Event(loop, signal, kSignal | kPersist, &call<kHandler, Owner>, &owner);
  }

  bool is_set() const { return event_ != nullptr; }
  void reset() { event_.reset(); }
  // Waits for the descriptor or the signal, without a time limit. Does nothing if it is waiting already.
  void add();
  // Calls the handler after this time (and each time it has passed again, with kPersist), or when the descriptor is
  // ready. A time that was given before is replaced.
  void add(std::chrono::microseconds after);
  void del();
  // Has the handler called in the loop's next round, as if the event had happened.
  void activate();
  bool pending() const;
  // As given to on_fd().
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
