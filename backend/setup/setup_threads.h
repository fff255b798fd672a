// Threads that do for the control thread what takes long and concerns one session alone: a device makes its queue pair,
// memory is allocated and registered, or given back. The control thread decides, and goes on meanwhile.
//
//   control thread ─ submit(work) ─▶ queue ─▶ one of the threads ─▶ fd() readable ─ take() ─▶ control thread
//
// While work is queued or under way, what it works on is the thread's; after take() the control thread's again. Work of a
// kind is begun in the order in which it came; where both kinds wait, in turn, so that a thousand sessions that end keep no
// newcomer waiting. Threads are started with the first work. If the system gives none, submit() does the work itself.
//
// Thread: all functions belong to one thread. Errors are the work's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"

namespace egret::backend {

class SetupThreads {
 public:
  using Work = std::function<base::Status()>;
  enum class Kind : uint8_t { kMake, kEnd };
  struct Done {
    uint64_t number = 0;                       // that submit() was given
    base::Status status = base::Status::ok();  // the work's
    uint64_t took_ns = 0;                      // of a thread
    uint64_t interval_ns = 0;                  // of what is made: since the piece before was done (completions.h)
  };

  // `threads`: at least 1. Throws std::system_error if the system has no descriptor for it.
  explicit SetupThreads(size_t threads);
  // Waits for the work that is under way. Work that is queued is not done any more.
  ~SetupThreads();
  SetupThreads(const SetupThreads&) = delete;
  SetupThreads& operator=(const SetupThreads&) = delete;

  // `number`: names the work in Done; any.
  void submit(Kind kind, uint64_t number, Work work);
  // Takes back work that no thread has begun: it is destroyed. False: it is under way, or done.
  bool withdraw(uint64_t number);
  // The next work that is done. False: none is; fd() is not readable then.
  bool take(Done& done);
  // Readable (level-triggered) when take() may have something.
  int fd() const;
  // Submitted and not begun.
  size_t waiting(Kind kind) const;

 private:
  struct Shared;
  const std::unique_ptr<Shared> shared_;
};

// As many as suit this number of CPUs: a device takes several commands at a time, while the threads wait for it; memory is
// made by the CPUs.
size_t setup_threads_for(size_t cpus);

}  // namespace egret::backend
