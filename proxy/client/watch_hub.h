// Distributes lines about clients' commands to watchers (memcached's `watch`): every worker logs lines; each watcher
// takes the lines of its streams, on its own worker.
//
//   any worker ─ wanted()? ─▶ log() ─ a line ─▶ Watcher (kBuffer bytes, then `skipped`) ─ wake ─▶ its worker
//
// While nobody watches, wanted() is one load of a word that rarely changes. While somebody watches, a line costs a lock
// and a copy per watcher. A watcher that does not keep up loses lines and delays nobody.
// Thread: any; Watcher::take() only the watcher's worker.
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
  static constexpr size_t kBuffer = 256 * 1024;  // bytes, as in memcached

  explicit Watcher(uint16_t streams);
  // Becomes readable when there are lines to take. Negative: the system has no descriptors left, do not use this watcher.
  int wake_fd() const { return wake_.get(); }
  uint16_t streams() const { return streams_; }

  // Appends a line, or counts it as lost if the buffer is full.
  void offer(std::string_view line);
  void skip(uint64_t lines);
  // Moves whole lines of about `most` bytes to `to`. False: there is nothing left.
  bool take(std::string& to, size_t most);

 private:
  const uint16_t streams_;
  base::UniqueFd wake_;
  std::mutex mutex_;
  std::string waiting_;
  size_t taken_ = 0;  // bytes of `waiting_` that were taken
  uint64_t skipped_ = 0;
};

class WatchHub {
 public:
  static constexpr size_t kMostWatchers = 20;  // as memcached

  // WatchStream bits of the streams that somebody watches: lines of other streams need not be made.
  uint32_t wanted() const { return wanted_.load(std::memory_order_relaxed); }
  // `text`: the line after time and number.
  void log(memcache::WatchStream stream, std::string_view text);
  // The line that log() makes of `text`, without its end.
  std::string line_of(std::string_view text);

  // False: there are kMostWatchers already.
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
