// Closes descriptors that a peer chose. That may take as long as the peer likes (a socket with SO_LINGER, a file of
// FUSE), so it is done by threads that do nothing else. They are started by the first descriptor, and end with the
// process. If all of them are held up, further descriptors wait, open; the limit of open files bounds how many. Where no threads
// may be started (helper_threads.h) all stay open: whoever connects to peers asks is_full() first.
//
// Thread: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

#include "base/unique_fd.h"

namespace egret::base {

class Closer {
 public:
  // The one of this process.
  static Closer& of_process();

  void close(UniqueFd descriptor);
  // So many stay open for good that no peer should be given the chance to add one.
  bool is_full() const { return kept_.load(std::memory_order_relaxed) >= kMostKept; }
  static constexpr size_t kMostKept = 16;

 private:
  Closer() = default;
  void start_thread();
  void run();

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<UniqueFd> waiting_;
  std::atomic<size_t> kept_{0};  // of them, while no threads may be started
  unsigned threads_ = 0;
  unsigned idle_ = 0;
};

}  // namespace egret::base
