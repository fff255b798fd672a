// Closes descriptors that a peer chose. That may take as long as the peer likes (a socket with SO_LINGER, a file of
// FUSE), so it is done by threads that do nothing else. They are started by the first descriptor, and end with the
// process. If all of them are held up, further descriptors wait, open; the limit of open files bounds how many. So do all
// where no threads may be started (helper_threads.h): whoever receives them must not go on with such a peer.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/unique_fd.h"

namespace egret::base {

class Closer {
 public:
  // The one of this process.
  static Closer& of_process();

  void close(UniqueFd descriptor);

 private:
  Closer() = default;
  void start_thread();
  void run();

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<UniqueFd> waiting_;
  unsigned threads_ = 0;
  unsigned idle_ = 0;
};

}  // namespace egret::base
