// The sessions of one thread with the backends behind one proxy, for all sockets that the thread has opened to it.
//
// Owned by those sockets, and by ServedSockets for the next one. Thread: the one that opened them, as a rule; any, under the mutex,
// since a program may hand a socket to another thread.
#pragma once

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
  // What a parent left behind is not touched: it may be in any state.
  ~ThreadEngine() {
    if (is_of_parent()) [[maybe_unused]]
      const client::Engine* const left_alone = engine_.release();
  }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;

  bool is_of_parent() const { return client::ForkGuard::generation() != generation_; }

  // Everything that uses the engine, or what its answers are written to. Not of a parent's.
  class Section {
   public:
    explicit Section(ThreadEngine& of) : held_(of.mutex_) { of.enter(); }
    void leave() { held_.unlock(); }

   private:
    std::unique_lock<std::mutex> held_;
  };
  client::Engine& engine() { return *engine_; }

 private:
  void enter() {
    if (std::exchange(thread_, client::this_thread()) == thread_) return;
    for (const auto* const sessions : {&engine_->router().sessions(), &engine_->router().leaving()}) {
      for (const auto& session : *sessions) release_owner(*session);
    }
  }

  const uint64_t generation_;
  const base::SystemClock clock_{};
  std::mutex mutex_;
  std::unique_ptr<client::Engine> engine_;
  uintptr_t thread_;  // the mutex: that used it last
};

}  // namespace egret::preload
