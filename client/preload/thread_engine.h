// The sessions of one thread with the backends behind one proxy, for all sockets that the thread has opened to it.
//
// Owned by those sockets, and by ServedSockets for the next one. Thread: the one that opened them, as a rule; any, under the mutex,
// since a program may hand a socket to another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "client/config/settings.h"
#include "client/engine/engine.h"
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

  // Everything that uses the engine, or what its answers are written to. Not when it is lost.
  class Section {
   public:
    explicit Section(ThreadEngine& of) : of_(of), held_(of.mutex_) { of.enter(); }
    void leave() { held_.unlock(); }
    void enter_again() {
      held_.lock();
      of_.enter();
    }

   private:
    ThreadEngine& of_;
    std::unique_lock<std::mutex> held_;
  };
  client::Engine& engine() { return *engine_; }

 private:
  void enter() {
    const uintptr_t before = std::exchange(thread_, client::this_thread());
    if (before == thread_) return;
    engine_->router().for_each_session([](auto& session) { release_owner(session); });
  }

  const uint64_t generation_;
  std::atomic<bool> is_broken_{false};
  const base::SystemClock clock_{};
  std::mutex mutex_;
  std::unique_ptr<client::Engine> engine_;
  uintptr_t thread_;  // the mutex: that used it last
};

}  // namespace egret::preload
