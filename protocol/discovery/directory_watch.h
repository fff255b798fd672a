// Tells when the entry of a file in its directory has changed: written, renamed to, removed; or an entry whose name begins
// with "..", such as the link "..data" by which Kubernetes replaces all files of a volume at once.
//
// It is a hint, not a promise: a file system without inotify, a user without watches left, a directory that is not there
// yet, or a link that leads elsewhere shows nothing. The owner looks at the file from time to time as well.
//
// Thread: the loop's.
#pragma once

#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "events/event.h"

namespace egret::discovery {

class DirectoryWatch {
 public:
  using Changed = std::function<void()>;

  // `changed` is called from the loop, once for many changes at a time.
  DirectoryWatch(events::EventLoop& loop, const std::string& file, Changed changed);

  // Watches the directory that the path leads to now: it may be another one than before, or have come only now.
  void renew();

 private:
  void on_ready();
  bool concerns_us(const char* entry) const;

  std::string directory_;
  std::string entry_;
  Changed changed_;
  base::UniqueFd inotify_;
  int watched_ = -1;
  events::Event ready_;
};

}  // namespace egret::discovery
