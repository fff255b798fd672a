// What happens in this proxy, for those who watch it (memcached's `watch`): every worker says what its clients do, each
// watcher takes the lines of the streams it asked for, on its own worker.
//
//   any worker ─ wanted()? ─▶ log() ─ a line ─▶ Watcher (a buffer of kBuffer bytes, then `skipped`) ─ wake ─▶ its
//   worker
//
// While nobody watches, wanted() is one load of a word that does not change. While somebody does, a line costs a lock
// and a copy for each watcher: a watcher that does not keep up loses lines and holds up nobody.
// Thread: any, but for Watcher::take(), which is its worker's.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "memcache/admin.h"

namespace egret::proxy {

class WatchHub;

class Watcher {
 public:
  static constexpr size_t kBuffer = 256 * 1024;  // as memcached's

  explicit Watcher(uint16_t streams);
  // Readable when there is something to take.
  int wake_fd() const { return wake_.get(); }
  uint16_t streams() const { return streams_; }

  // A line for it, or the number of those that are lost.
  void offer(std::string_view line);
  void skip(uint64_t lines);
  // Moves up to about so many bytes of whole lines to `to`. False: there is nothing left.
  bool take(std::string& to, size_t most);

 private:
  const uint16_t streams_;
  base::UniqueFd wake_;
  std::mutex mutex_;
  std::string waiting_;
  size_t taken_ = 0;  // of `waiting_`
  uint64_t skipped_ = 0;
};

class WatchHub {
 public:
  static constexpr size_t kMostWatchers = 20;  // as memcached

  // The streams that somebody watches: WatchStream bits.
  uint32_t wanted() const { return wanted_.load(std::memory_order_relaxed); }
  // `text`: what follows time and number in the line.
  void log(memcache::WatchStream stream, std::string_view text);
  // The line that log() makes of it, without its end.
  std::string line_of(std::string_view text);

  // False: there are too many.
  bool add(Watcher& watcher);
  void remove(Watcher& watcher);

 private:
  void sum_up();

  std::atomic<uint32_t> wanted_{0};
  std::atomic<uint64_t> number_{0};
  std::mutex mutex_;
  std::vector<Watcher*> watchers_;
};

}  // namespace egret::proxy
