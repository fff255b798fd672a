// Signals as a file descriptor, so that a control thread waits for them beside everything else and no handler exists.
#pragma once

#include <initializer_list>
#include <optional>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::base {

class SignalSource {
 public:
  // Blocks `signals` in the calling thread and in all it starts afterwards: call it in main() before any thread.
  // SIGPIPE is ignored too: a peer that went away is an error of write(), not our end.
  static Expected<SignalSource> create(std::initializer_list<int> signals);

  // Becomes readable when a signal waits. Owned by this object.
  int fd() const { return fd_.get(); }
  // The next signal that waits; does not block.
  std::optional<int> take() const;

 private:
  explicit SignalSource(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace egret::base
