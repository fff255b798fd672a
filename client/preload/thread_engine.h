// The sessions of one thread with the backends behind one proxy, for all sockets that the thread has opened to it.
//
// Owned by those sockets, and by ServedSockets for the next one. Thread: the one that opened them, as a rule; any, under the mutex,
// since a program may hand a socket to another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <poll.h>

#include "base/clock.h"
#include "client/config/settings.h"
#include "client/engine/engine.h"
#include "client/preload/own_fd.h"
#include "client/process/fork.h"
#include "client/process/thread.h"

namespace egret::preload {

class ThreadEngine {
 public:
  explicit ThreadEngine(const client::Settings& settings)
      : generation_(client::ForkGuard::generation()),
        engine_(std::make_unique<client::Engine>(settings, clock_)),
        thread_(client::this_thread()) {}
  // What a parent, or a failure, left behind is not touched: it may be in any state.
  ~ThreadEngine() {
    if (is_lost()) {
      [[maybe_unused]] const client::Engine* const left_alone = engine_.release();
    } else {
      enter();
    }
  }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;

  // It is a forked parent's, or has failed inside: it must not be touched any more.
  bool is_lost() const {
    return is_broken_.load(std::memory_order_relaxed) || client::ForkGuard::generation() != generation_;
  }
  void break_down() { is_broken_.store(true, std::memory_order_relaxed); }

  class Outside;
  // Everything that uses the engine, or what its answers are written to. Not when it is lost.
  class Section {
   public:
    explicit Section(ThreadEngine& of) : of_(of), held_(of.mutex_) { of.enter(); }
    ~Section() { of_.wake_sleepers(); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    friend class Outside;
    ThreadEngine& of_;
    std::unique_lock<std::mutex> held_;
  };

  // While a thread that is in a section sleeps: others may use the engine.
  class Outside {
   public:
    explicit Outside(Section& section) : section_(section) {
      section_.of_.wake_sleepers();
      section_.held_.unlock();
    }
    ~Outside() {
      section_.held_.lock();
      section_.of_.enter();
    }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    Section& section_;
  };

  // A thread that waits until something has come by the engine, and sleeps outside of its section. The first one wakes by the engine's
  // events, and takes them; each is also rung for by whoever finds that something has come for it, or when it becomes the first.
  // Where only one thread uses the engine there is nobody to ring.
  class Sleeper {
   public:
    // In a section, as all but its end. `has_come` is asked in the sections of others.
    Sleeper(ThreadEngine& of, std::function<bool()> has_come);
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    // Before each sleep: what to wait for; their fd may be negative. Whoever has no bell looks again after kMostUnlookedMs.
    void arm(pollfd& events, pollfd& bell);
    // After it: takes the events that have woken it.
    void look(const pollfd& events);

   private:
    friend class ThreadEngine;
    bool is_first() const;
    void ring();

    ThreadEngine& of_;
    const uintptr_t thread_ = client::this_thread();
    const std::function<bool()> has_come_;
    OwnFd bell_;
    bool is_rung_ = false;
  };
  static constexpr int kMostUnlookedMs = 20;

  client::Engine& engine() { return *engine_; }

 private:
  void enter() {
    const uintptr_t before = std::exchange(thread_, client::this_thread());
    if (before == thread_ || is_lost()) return;
    is_shared_ = true;
    engine_->router().for_each_session([](auto& session) { release_owner(session); });
  }
  // Those for whom something has come.
  void wake_sleepers() {
    if (is_asleep_.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_sleepers();
  }
  void look_for_sleepers();

  const uint64_t generation_;
  std::atomic<bool> is_broken_{false};
  const base::SystemClock clock_{};
  std::mutex mutex_;
  std::unique_ptr<client::Engine> engine_;
  uintptr_t thread_;        // that used the engine last; under mutex_
  bool is_shared_ = false;  // several threads have used the engine; under mutex_
  std::mutex sleepers_mutex_;
  std::vector<Sleeper*> sleepers_;      // under sleepers_mutex_
  std::atomic<bool> is_asleep_{false};  // there are any
};

}  // namespace egret::preload
