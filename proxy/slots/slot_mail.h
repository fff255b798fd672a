// What workers tell the control thread of the sessions of slot clients that they serve: that one has ended.
//
// Any thread writes, under a lock; the control thread reads when the bell has rung.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace egret::proxy {

class SlotMail {
 public:
  // Throws std::system_error if the system has no descriptors left.
  SlotMail();

  void ended(uint64_t session);
  int fd() const { return bell_.get(); }
  std::vector<uint64_t> take();

 private:
  base::UniqueFd bell_;
  std::mutex mutex_;
  std::vector<uint64_t> ended_;
};

}  // namespace egret::proxy
