// How many client connections there are, and whether another may come in. The frontend lets them in; any thread that
// ends one says so, and wakes the frontend if that is waiting for it.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unique_fd.h"

namespace egret::proxy {

class ConnectionGate {
 public:
  ConnectionGate() : left_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { EGRET_CHECK(left_.is_open()); }

  // The frontend's side.
  bool has_room(uint32_t limit) const { return open_.load(std::memory_order_relaxed) < limit; }
  void enter() { open_.fetch_add(1, std::memory_order_relaxed); }
  // The descriptor becomes readable when one leaves. False: there is room already, and nothing is awaited.
  bool wait_for_room(uint32_t limit) {
    awaited_.store(true);
    // Whoever leaves after this sees it awaited; whoever left before is seen here.
    return open_.load() >= limit || !awaited_.exchange(false);
  }
  int fd() const { return left_.get(); }
  void take_notice() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(left_.get(), &count, sizeof count);
  }

  // Any thread.
  void leave() {
    open_.fetch_sub(1);
    if (!awaited_.load() || !awaited_.exchange(false)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(left_.get(), &one, sizeof one);
  }

 private:
  std::atomic<uint32_t> open_{0};  // accepted but not yet taken over by a worker included
  std::atomic<bool> awaited_{false};
  base::UniqueFd left_;
};

}  // namespace egret::proxy
